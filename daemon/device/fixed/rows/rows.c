/* The scalar rows, which define what the others compute. */
#include "daemon/device/fixed/rows/rows.h"

#include "daemon/device/fixed/container.h"
#include "daemon/device/fixed/divide.h"
#include "daemon/device/fixed/real.h"
#include "daemon/device/implementations.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

/* Limits are within the container. */
static int64_t limited(const struct row *row, int64_t x)
{
	int64_t low = row->to.limit_low, high = row->to.limit_high;
	return x < low ? low : x > high ? high : x;
}

static int64_t rounded(const struct row *row, int64_t x, int64_t *saturated)
{
	const struct requantize *to = &row->to;
	return limited(row, round_clamp(x, to->shift, to->rounding, to->low, to->high, saturated));
}

#define SCALAR(name, value)                                                                                       \
	static int64_t scalar_##name(const struct row *row, int64_t n, int64_t *saturated)                        \
	{                                                                                                         \
		(void)saturated;                                                                                  \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			int64_t a = row_get(&row->in1, i), b = row_get(&row->in2, i);                             \
			container_put(row->out, row->to.bytes, i, value);                                         \
		}                                                                                                 \
		return n;                                                                                         \
	}

/* The container's bits of x * 2^amount, the amount being the low 8 bits of `by`, signed. */
static int64_t shifted(int64_t x, int64_t by)
{
	int amount = (int8_t)by;
	if (amount >= 0)
		return amount < 16 ? x * ((int64_t)1 << amount) : 0;
	return x >> (amount < -31 ? 31 : -amount);
}

static int64_t quotient(const struct row *row, int64_t a, int64_t b, int64_t *saturated)
{
	if (b == 0) {
		++*row->zeros;
		return limited(row, a < 0 ? row->to.low : a > 0 ? row->to.high : 0);
	}
	int64_t dividend = a * row->in1_unit, divisor = b * row->in2_unit;
	int64_t floor = dividend / divisor, rest = dividend % divisor;
	floor -= rest != 0 && (rest < 0) != (divisor < 0);
	return rounded(row, floor | (rest != 0), saturated);
}

static int64_t mean(const struct row *row, int64_t sum, int64_t n, int64_t *saturated)
{
	const struct requantize *to = &row->to;
	return limited(row, divide_clamp(sum, n, -to->shift, to->rounding, to->low, to->high, saturated));
}

SCALAR(requantize, ((void)b, rounded(row, a, saturated)))
SCALAR(sum, limited(row, align_sum(&row->align, a, row->sign *b, &row->to, saturated)))
SCALAR(product, rounded(row, a *b, saturated))
SCALAR(mean, mean(row, a, b, saturated))
SCALAR(smaller, rounded(row, a < b ? a : b, saturated))
SCALAR(larger, rounded(row, a > b ? a : b, saturated))
SCALAR(mac, limited(row, align_sum(&row->align, row_get(&row->acc, i), a *b, &row->to, saturated)))
SCALAR(slope, a < 0 ? rounded(row, a *b, saturated) : a)
SCALAR(quotient, quotient(row, a, b, saturated))
SCALAR(arithmetic_shift, shifted(a, b))
SCALAR(logical_shift, shifted((uint16_t)a, b))

static int64_t scalar_from_real(const struct row *row, int64_t n, int64_t *saturated)
{
	for (int64_t i = 0; i < n; i++) {
		struct real real = real_from_fp32(((const float *)row->in1.data)[i]);
		int64_t x = round_clamp(real.mantissa, row->to.shift - real.exponent, row->to.rounding,
					row->to.low, row->to.high, saturated);
		container_put(row->out, row->to.bytes, i, limited(row, x));
	}
	return n;
}

static int64_t scalar_to_real(const struct row *row, int64_t n, int64_t *saturated)
{
	(void)saturated;
	for (int64_t i = 0; i < n; i++)
		((float *)row->out)[i] = real_to_fp32(row_get(&row->in1, i), row->to.shift, row->to.rounding);
	return n;
}

const struct rows rows__scalar = {
#define ROW(name, value) .name = scalar_##name,
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
};

/* ---- macs that leave 32 bits: the same answers a block at a time, in loops that compilers vectorize ---- */

enum { WIDE_BLOCK = 256 };

static void load_wide(const struct row_source *source, int64_t first, int64_t n, int64_t *to)
{
	int32_t mask = source->mask;
	if (source->bytes == 1)
		for (int64_t i = 0; i < n; i++)
			to[i] = ((const int8_t *)source->data)[first + i] & mask;
	else if (source->bytes == 2)
		for (int64_t i = 0; i < n; i++)
			to[i] = ((const int16_t *)source->data)[first + i] & mask;
	else
		for (int64_t i = 0; i < n; i++)
			to[i] = row_get(source, first + i);
}

/* As align_sum(), rounded by requantize_row64(). */
static int64_t store_wide(const struct row *row, int64_t *first, int64_t *second, int64_t n, void *out)
{
	enum { MARK_SHIFT = 2, FINE_BITS = 32 };
	const struct align *align = &row->align;
	int64_t *coarse = align->first_is_coarse ? first : second, *fine = align->first_is_coarse ? second : first;
	struct requantize to = row->to;
	int64_t right = align->beyond < 62 ? align->beyond : 62, lost = ((int64_t)1 << right) - 1;
	if (align->beyond > 0 && to.shift < MARK_SHIFT) {
		/* Any coarse term saturates; without one the fine term is the sum. */
		int64_t beyond_all = (int64_t)1 << 62;
		to.shift = to.shift + align->beyond < FINE_BITS + 1 ? to.shift + align->beyond : FINE_BITS + 1;
		for (int64_t i = 0; i < n; i++)
			fine[i] = coarse[i] == 0 ? fine[i] : coarse[i] > 0 ? beyond_all : -beyond_all;
	} else {
		int64_t unit = (int64_t)1 << align->left;
		for (int64_t i = 0; i < n; i++)
			fine[i] = coarse[i] * unit + ((fine[i] >> right) | ((fine[i] & lost) != 0));
	}
	return requantize_row64(&to, fine, n, out);
}

static int64_t wide_mac(const struct row *row, int64_t n, int64_t *saturated)
{
	int64_t acc[WIDE_BLOCK], product[WIDE_BLOCK], factor[WIDE_BLOCK];
	for (int64_t at = 0, count; at < n; at += count) {
		count = n - at < WIDE_BLOCK ? n - at : WIDE_BLOCK;
		load_wide(&row->acc, at, count, acc);
		load_wide(&row->in2, at, count, product);
		load_wide(&row->in1, at, count, factor);
		for (int64_t i = 0; i < count; i++)
			product[i] *= factor[i];
		*saturated += store_wide(row, acc, product, count, (uint8_t *)row->out + at * row->to.bytes);
	}
	return n;
}

static const struct rows rows_wide = {
#define ROW(name, value) .name = scalar_##name,
#define scalar_mac wide_mac
#include "daemon/device/fixed/rows/rows.def"
#undef scalar_mac
#undef ROW
};

struct row_source row_source(int dtype)
{
	unsigned bytes = npumem_dtype_bytes(dtype);
	int64_t low, high;
	bool has_range = npumem_dtype_range(dtype, &low, &high);
	assert(has_range && bytes <= 2);
	(void)has_range;
	return (struct row_source){.bytes = bytes, .mask = low < 0 ? -1 : (int32_t)high};
}

int64_t row_magnitude(int dtype)
{
	int64_t low = 0, high = 0;
	npumem_dtype_range(dtype, &low, &high);
	return low < 0 ? -low : high;
}

static void choose(struct row *row, enum isa isa, int64_t value)
{
	row->drop = 0;
	row->scale = 0;
	row->most = value;
	row->rows = requantize_fits32(value, row->to.shift) ? implementations[isa].rows
		    : isa == ISA_SCALAR			    ? &rows__scalar
							    : &rows_wide;
}

void row_init(struct row *row, enum isa isa, int64_t value)
{
	/* Less than half a unit is 0, however much less. */
	int64_t least = 65 - __builtin_clzll((unsigned long long)value | 1);
	if (value < INT64_MAX && row->to.shift > least)
		row->to.shift = least;
	choose(row, isa, value);
}

/* Of no subnormal. */
static double power_of_two(int64_t exponent)
{
	uint64_t bits = (uint64_t)(1023 + exponent) << 52;
	double power;
	memcpy(&power, &bits, sizeof(power));
	return power;
}

void row_init_product(struct row *row, enum isa isa, int64_t value)
{
	enum { DOUBLE_BITS = 52 };
	row_init(row, isa, value);
	int64_t shift = row->to.shift;
	if (requantize_fits32(value, shift) || value > (int64_t)1 << DOUBLE_BITS || shift > DOUBLE_BITS ||
	    shift < -DOUBLE_BITS)
		return;
	row->rows = implementations[isa].rows;
	row->most = INT64_MAX;
	row->scale = power_of_two(-shift);
}

/* By doubles: what is no tie is further from one than their quotient is from the exact one. */
void row_init_mean(struct row *row, enum isa isa, int64_t value)
{
	row_init(row, isa, value);
	row->scale = power_of_two(-row->to.shift);
}

/* Doubles hold every power of two that there are frac_bits for; floats those that are no subnormals. */
void row_init_real(struct row *row, enum isa isa)
{
	int64_t shift = row->to.shift;
	row->drop = 0;
	row->most = INT64_MAX;
	row->rows = implementations[shift <= 126 ? isa : ISA_SCALAR].rows;
	row->scale = power_of_two(-shift);
}

/* The magnitude of the aligned sum of two terms; that of none where they do not meet. */
static int64_t aligned(const struct align *align, int64_t first, int64_t second)
{
	int64_t coarse = align->first_is_coarse ? first : second, fine = align->first_is_coarse ? second : first;
	return align->beyond > 0 ? INT64_MAX : (coarse << align->left) + fine;
}

void row_init_sum(struct row *row, enum isa isa, int64_t in1, int64_t in2)
{
	/* Doubles hold terms of 16 bits that are so far apart. Past it the finer one only decides ties, where
	 * there is a coarser one, so that it may be nearer. */
	enum { TERM_BITS = 16, APART = 36 };
	int64_t value = aligned(&row->align, in1, in2);
	row_init(row, isa, value);
	if (requantize_fits32(value, row->to.shift) || (in1 | in2) > (int64_t)1 << TERM_BITS)
		return;
	int64_t coarse = row->align.left - row->to.shift, fine = -row->align.beyond - row->to.shift;
	row->rows = implementations[isa].rows;
	row->scale = power_of_two(coarse);
	row->alone = power_of_two(fine);
	row->beside = power_of_two(fine > coarse - APART ? fine : coarse - APART);
}

void row_init_mac(struct row *row, enum isa isa, int64_t acc, int64_t product)
{
	int64_t value = aligned(&row->align, acc, product);
	row_init(row, isa, value);
	/* One bit less, of what lies two places below every bit that decides the rounding. */
	if (requantize_fits32(value, row->to.shift) || row->align.left == 0 || row->to.shift < 3 ||
	    value == INT64_MAX)
		return;
	choose(row, isa, value / 2 + 1);
	row->most = INT64_MAX;
	row->drop = 1;
}

/* What the row of an instruction set leaves is done by the scalar one. */
#define ROW(name, value)                                                                                          \
	void row_##name(const struct row *row, int64_t n, int64_t *saturated)                                     \
	{                                                                                                         \
		int64_t done = row->rows->name(row, n, saturated);                                                \
		if (done < n) {                                                                                   \
			const struct row rest = row_after(row, done);                                             \
			rows__scalar.name(&rest, n - done, saturated);                                            \
		}                                                                                                 \
	}
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
