/* The rows of one instruction set. */
#include "daemon/device/fixed/rows/rows.h"

#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"

VECTOR vector source_at(const struct row_source *source, int64_t i, int64_t n)
{
	vector x;
	if (source->bytes == 1)
		x = vector_load8((const uint8_t *)source->data + i, n);
	else if (source->bytes == 2)
		x = vector_load16((const uint16_t *)source->data + i, n);
	else
		return source->bytes ? vector_load32((const int32_t *)source->data + i, n)
				     : vector_set(source->value);
	return vector_and(x, vector_set(source->mask));
}

VECTOR void store_at(void *out, unsigned bytes, int64_t i, vector x, int64_t n)
{
	if (bytes == 1)
		vector_store8((uint8_t *)out + i, x, n);
	else
		vector_store16((uint16_t *)out + i, x, n);
}

/* The values of n elements from i on. */
typedef vector value_function(const struct row *row, int64_t i, int64_t n);

VECTOR vector element(const struct row *row, const struct rounding *r, value_function *value, int64_t i, int64_t n,
		      vector counts)
{
	vector x = rounded(r, value(row, i, n));
	store_at(row->out, r->bytes, i, limited(r, x), n);
	return vector_count_outside(counts, x, r->low, r->high, n);
}

/* The row is copied: stores through a pointer to bytes could change it. */
VECTOR int64_t each(const struct row *from, value_function *value, unsigned drop, int64_t n, int64_t *saturated)
{
	const struct row copy = *from, *row = &copy;
	struct rounding r = rounding_of(&row->to, drop);
	vector counts = vector_set(0);
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		counts = element(row, &r, value, i, VECTOR_N, counts);
	if (VECTOR_TAILS && i < n) {
		counts = element(row, &r, value, i, n - i, counts);
		i = n;
	}
	*saturated += vector_total(counts);
	return i;
}

VECTOR void skip(struct row_source *source, int64_t n)
{
	if (source->bytes)
		source->data = (const uint8_t *)source->data + n * source->bytes;
}

VECTOR bool is_raw_source(const struct row *row, const struct row_source *source)
{
	if (source->bytes == 0)
		return source->value >= row->to.low && source->value <= row->to.high;
	return source->bytes == row->to.bytes && source->mask == -1;
}

/* Whether elements can be compared as they lie in memory, and nothing is left to round or to saturate. */
VECTOR bool is_raw(const struct row *row, const struct row_source *other)
{
	return row->in1.bytes && is_raw_source(row, &row->in1) && is_raw_source(row, other) &&
	       row->to.shift == 0 && row->to.low < 0;
}

typedef vector raw_function(vector a, vector b, unsigned bytes);

/* With a constant `of_two` of in1 and in2, in the limits. */
VECTOR int64_t raw_row(const struct row *from, raw_function *of_two, const unsigned bytes, int64_t n)
{
	const struct row row = *from;
	vector low = vector_set_raw((int32_t)row.to.limit_low, bytes);
	vector high = vector_set_raw((int32_t)row.to.limit_high, bytes);
	vector constant = vector_set_raw(row.in2.value, bytes);
	int64_t end = n * bytes, i = 0;
	for (; i < end && (VECTOR_TAILS || VECTOR_BYTES <= end); i += VECTOR_BYTES) {
		/* Some again: where `out` is an operand, what they became gives the same. */
		if (!VECTOR_TAILS && i + VECTOR_BYTES > end)
			i = end - VECTOR_BYTES;
		vector x = vector_load_raw((const uint8_t *)row.in1.data + i, end - i);
		vector y = row.in2.bytes ? vector_load_raw((const uint8_t *)row.in2.data + i, end - i) : constant;
		x = vector_min_raw(vector_max_raw(of_two(x, y, bytes), low, bytes), high, bytes);
		vector_store_raw((uint8_t *)row.out + i, x, end - i);
	}
	return i < end ? i / bytes : n;
}

VECTOR int64_t raw(const struct row *row, raw_function *of_two, int64_t n)
{
	return row->to.bytes == 1 ? raw_row(row, of_two, 1, n) : raw_row(row, of_two, 2, n);
}

VECTOR vector first_raw(vector a, vector b, unsigned bytes)
{
	(void)b, (void)bytes;
	return a;
}

/* ---- values of 16 bits: 2 * VECTOR_WORDS of them at a time ---- */

enum { WORDS_N = 2 * VECTOR_WORDS };

typedef struct vector_pair words_function(const struct row *row, int64_t i);

/* Whether sources and values have 16 bits at most, and so have results before they are saturated. The largest
 * magnitude of `signed_most` only negative ones have. */
VECTOR bool is_words(const struct row *row, bool signed_most)
{
	int64_t shift = row->to.shift, left = shift < 0 ? -shift : 0;
	return shift <= 15 && left <= 8 && row->most <= INT16_MAX + signed_most &&
	       row->most << left <= INT16_MAX + signed_most && (row->to.bytes == 1 || row->to.low < 0);
}

VECTOR bool is_byte(const struct row_source *source)
{
	return source->bytes == 1 || (source->bytes == 0 && source->value == (int16_t)source->value);
}

VECTOR struct vector_pair words_at(const struct row_source *source, int64_t i)
{
	if (source->bytes == 0)
		return (struct vector_pair){vector_set_raw(source->value, 2), vector_set_raw(source->value, 2)};
	if (source->bytes == 2)
		return vector_pair_load16((const int16_t *)source->data + i);
	return vector_pair_load8((const int8_t *)source->data + i, source->mask >= 0);
}

/* Rounding to the right is a product of 2^(15 - shift), whose high half rounds halves up; what another mode does
 * to a tie is taken back. */
VECTOR vector words_rounded(vector x, vector factor, vector below, vector half, enum npumem_rounding rounding)
{
	vector up = vector_words_scale(x, factor);
	if (rounding == NPUMEM_UP)
		return up;
	/* Of ties the odd ones, or the negative ones. */
	vector tie = vector_words_if_same(vector_and(x, below), half, vector_set_raw(1, 2));
	vector down = rounding == NPUMEM_CONVERGENT ? up : vector_words_right(x, 15);
	return vector_words_sub(up, vector_and(tie, down));
}

VECTOR void words_store(const struct row *row, int64_t i, struct vector_pair x, int64_t *saturated)
{
	int32_t low = (int32_t)row->to.limit_low, high = (int32_t)row->to.limit_high;
	if (row->to.bytes == 1)
		*saturated += vector_pair_outside(x, (int32_t)row->to.low, (int32_t)row->to.high);
	if (row->to.bytes == 1 && row->to.low < 0) {
		vector bytes = vector_max_raw(vector_pair_pack(x), vector_set_raw(low, 1), 1);
		bytes = vector_min_raw(bytes, vector_set_raw(high, 1), 1);
		vector_store_raw((uint8_t *)row->out + i, bytes, VECTOR_BYTES);
		return;
	}
	x.low = vector_min_raw(vector_max_raw(x.low, vector_set_raw(low, 2), 2), vector_set_raw(high, 2), 2);
	x.high = vector_min_raw(vector_max_raw(x.high, vector_set_raw(low, 2), 2), vector_set_raw(high, 2), 2);
	if (row->to.bytes == 2)
		vector_pair_store16((int16_t *)row->out + i, x);
	else
		vector_store_raw((uint8_t *)row->out + i, vector_pair_pack_unsigned(x), VECTOR_BYTES);
}

VECTOR int64_t words_in_mode(const struct row *from, words_function *value, enum npumem_rounding rounding,
			     int64_t n, int64_t *saturated)
{
	const struct row copy = *from, *row = &copy;
	int64_t i = 0, outside = 0, shift = row->to.shift;
	unsigned left = shift < 0 ? (unsigned)-shift : 0, right = shift > 0 ? (unsigned)shift : 0;
	vector factor = vector_set_raw(right ? 1 << (15 - right) : 0, 2);
	vector below = vector_set_raw((1 << right) - 1, 2), half = vector_set_raw(right ? 1 << (right - 1) : 0, 2);
	for (; i + WORDS_N <= n; i += WORDS_N) {
		struct vector_pair x = value(row, i);
		if (right) {
			x.low = words_rounded(x.low, factor, below, half, rounding);
			x.high = words_rounded(x.high, factor, below, half, rounding);
		} else if (left) {
			x = vector_pair_left(x, left);
		}
		words_store(row, i, x, &outside);
	}
	*saturated += outside;
	return i;
}

/* As many whole vectors of words as there are, and the rest as `narrow` does it. */
VECTOR int64_t words(const struct row *row, words_function *value, value_function *narrow, int64_t n,
		     int64_t *saturated)
{
	enum npumem_rounding rounding = row->to.shift > 0 ? row->to.rounding : NPUMEM_UP;
	int64_t done = rounding == NPUMEM_UP	       ? words_in_mode(row, value, NPUMEM_UP, n, saturated)
		       : rounding == NPUMEM_CONVERGENT ? words_in_mode(row, value, NPUMEM_CONVERGENT, n, saturated)
						       : words_in_mode(row, value, NPUMEM_NEAREST, n, saturated);
	struct row rest = *row;
	if (done == n)
		return n;
	skip(&rest.in1, done);
	skip(&rest.in2, done);
	skip(&rest.acc, done);
	rest.out = (uint8_t *)row->out + done * row->to.bytes;
	return done + each(&rest, narrow, 0, n - done, saturated);
}

VECTOR vector requantize(const struct row *row, int64_t i, int64_t n)
{
	return source_at(&row->in1, i, n);
}

VECTOR struct vector_pair words_requantize(const struct row *row, int64_t i)
{
	return words_at(&row->in1, i);
}

static int64_t run_requantize(const struct row *row, int64_t n, int64_t *saturated)
{
	struct row one = *row;
	one.in2 = (struct row_source){.value = 0};
	if (is_raw(&one, &one.in2))
		return raw(&one, first_raw, n);
	if (row->in1.mask == -1 && row->in1.bytes + row->to.bytes <= 3 && is_words(row, true))
		return words(row, words_requantize, requantize, n, saturated);
	return each(row, requantize, 0, n, saturated);
}

VECTOR vector sum(const struct row *row, int64_t i, int64_t n)
{
	vector left = vector_set((int32_t)row->align.left), zero = vector_set(0);
	vector a = source_at(&row->in1, i, n), b = source_at(&row->in2, i, n);
	a = vector_left(a, row->align.first_is_coarse ? left : zero);
	b = vector_left(b, row->align.first_is_coarse ? zero : left);
	return row->sign > 0 ? vector_add(a, b) : vector_sub(a, b);
}

VECTOR struct vector_pair words_sum(const struct row *row, int64_t i)
{
	struct vector_pair a = words_at(&row->in1, i), b = words_at(&row->in2, i);
	if (row->align.left && row->align.first_is_coarse)
		a = vector_pair_left(a, row->align.left);
	else if (row->align.left)
		b = vector_pair_left(b, row->align.left);
	return row->sign > 0 ? vector_pair_add(a, b) : vector_pair_sub(a, b);
}

/* Containers as they lie, with saturation: it happened where the sum is not what wrapping gives. */
VECTOR int64_t raw_sum(const struct row *from, const bool add, const unsigned bytes, int64_t n, int64_t *saturated)
{
	const struct row row = *from;
	vector low = vector_set_raw((int32_t)row.to.limit_low, bytes);
	vector high = vector_set_raw((int32_t)row.to.limit_high, bytes);
	vector first = vector_set_raw(row.in1.value, bytes), second = vector_set_raw(row.in2.value, bytes);
	int64_t end = n * bytes, i = 0, outside = 0;
	for (; VECTOR_TAILS ? i < end : i + VECTOR_BYTES <= end; i += VECTOR_BYTES) {
		vector x = row.in1.bytes ? vector_load_raw((const uint8_t *)row.in1.data + i, end - i) : first;
		vector y = row.in2.bytes ? vector_load_raw((const uint8_t *)row.in2.data + i, end - i) : second;
		vector kept = add ? vector_add_raw(x, y, bytes) : vector_sub_raw(x, y, bytes);
		outside += vector_count_other_raw(
			kept, add ? vector_wrapped_add_raw(x, y, bytes) : vector_wrapped_sub_raw(x, y, bytes),
			bytes, end - i);
		kept = vector_min_raw(vector_max_raw(kept, low, bytes), high, bytes);
		vector_store_raw((uint8_t *)row.out + i, kept, end - i);
	}
	*saturated += outside;
	return i < end ? i / bytes : n;
}

static int64_t run_raw_sum(const struct row *row, int64_t n, int64_t *saturated)
{
	if (row->sign > 0)
		return row->to.bytes == 1 ? raw_sum(row, true, 1, n, saturated)
					  : raw_sum(row, true, 2, n, saturated);
	return row->to.bytes == 1 ? raw_sum(row, false, 1, n, saturated) : raw_sum(row, false, 2, n, saturated);
}

/* Already rounded. */
VECTOR vector wide_sum(const struct row *row, int64_t i, int64_t n)
{
	vector a = source_at(&row->in1, i, n), b = source_at(&row->in2, i, n);
	b = row->sign > 0 ? b : vector_sub(vector_set(0), b);
	vector coarse = row->align.first_is_coarse ? a : b, fine = row->align.first_is_coarse ? b : a;
	const struct vector_scales scales = {row->scale, row->beside, row->alone};
	return vector_scaled_sum(coarse, fine, &scales, row->to.rounding);
}

/* Of values that are results. */
VECTOR int64_t each_wide(const struct row *row, value_function *value, int64_t n, int64_t *saturated)
{
	struct row wide = *row;
	wide.to.shift = 0;
	return each(&wide, value, 0, n, saturated);
}

static int64_t run_sum(const struct row *row, int64_t n, int64_t *saturated)
{
	if (row->scale != 0)
		return each_wide(row, wide_sum, n, saturated);
	if (row->align.left == 0 && row->to.shift == 0 && row->to.low < 0 && is_raw_source(row, &row->in1) &&
	    is_raw_source(row, &row->in2))
		return run_raw_sum(row, n, saturated);
	if (is_byte(&row->in1) && is_byte(&row->in2) && is_words(row, false))
		return words(row, words_sum, sum, n, saturated);
	return each(row, sum, 0, n, saturated);
}

VECTOR vector product(const struct row *row, int64_t i, int64_t n)
{
	return vector_mul(source_at(&row->in1, i, n), source_at(&row->in2, i, n));
}

/* Already rounded. */
VECTOR vector wide_product(const struct row *row, int64_t i, int64_t n)
{
	return vector_scaled(source_at(&row->in1, i, n), source_at(&row->in2, i, n), row->scale, row->to.rounding);
}

VECTOR struct vector_pair words_product(const struct row *row, int64_t i)
{
	return vector_pair_mul(words_at(&row->in1, i), words_at(&row->in2, i));
}

static int64_t run_product(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_byte(&row->in1) && is_byte(&row->in2) && is_words(row, false))
		return words(row, words_product, product, n, saturated);
	if (row->scale == 0)
		return each(row, product, 0, n, saturated);
	return each_wide(row, wide_product, n, saturated);
}

/* Already rounded. */
VECTOR vector mean(const struct row *row, int64_t i, int64_t n)
{
	return vector_scaled_mean(source_at(&row->in1, i, n), row->in2.value, row->scale, row->to.rounding);
}

static int64_t run_mean(const struct row *row, int64_t n, int64_t *saturated)
{
	return each_wide(row, mean, n, saturated);
}

VECTOR vector smaller(const struct row *row, int64_t i, int64_t n)
{
	return vector_min(source_at(&row->in1, i, n), source_at(&row->in2, i, n));
}

static int64_t run_smaller(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_raw(row, &row->in2))
		return raw(row, vector_min_raw, n);
	return each(row, smaller, 0, n, saturated);
}

VECTOR vector larger(const struct row *row, int64_t i, int64_t n)
{
	return vector_max(source_at(&row->in1, i, n), source_at(&row->in2, i, n));
}

static int64_t run_larger(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_raw(row, &row->in2))
		return raw(row, vector_max_raw, n);
	return each(row, larger, 0, n, saturated);
}

VECTOR vector mac(const struct row *row, int64_t i, int64_t n)
{
	vector acc = source_at(&row->acc, i, n), p = product(row, i, n), drop = vector_set((int32_t)row->drop);
	vector coarse = row->align.first_is_coarse ? acc : p, fine = row->align.first_is_coarse ? p : acc;
	vector mark = vector_and(fine, drop); /* `drop` is 0 or 1, and so its own mask */
	coarse = vector_left(coarse, vector_set((int32_t)(row->align.left - row->drop)));
	return vector_or(vector_add(coarse, vector_right(fine, drop)), mark);
}

VECTOR struct vector_pair words_mac(const struct row *row, int64_t i)
{
	struct vector_pair acc = words_at(&row->acc, i), p = words_product(row, i);
	if (row->align.left && row->align.first_is_coarse)
		acc = vector_pair_left(acc, row->align.left);
	else if (row->align.left)
		p = vector_pair_left(p, row->align.left);
	return vector_pair_add(acc, p);
}

static int64_t run_mac(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_byte(&row->in1) && is_byte(&row->in2) && is_byte(&row->acc) && is_words(row, false))
		return words(row, words_mac, mac, n, saturated);
	return each(row, mac, row->drop, n, saturated);
}

/* Zero where in1 is not negative, so that only the rest can be counted. */
VECTOR vector slope_element(const struct row *row, const struct rounding *r, const bool is_wide, int64_t i,
			    int64_t n, vector counts)
{
	vector in = source_at(&row->in1, i, n), slope = source_at(&row->in2, i, n);
	vector below = vector_min(in, vector_set(0));
	vector x = is_wide ? vector_scaled(below, slope, row->scale, row->to.rounding)
			   : rounded(r, vector_mul(below, slope));
	store_at(row->out, r->bytes, i, vector_if_negative(in, limited(r, x)), n);
	return vector_count_outside(counts, x, r->low, r->high, n);
}

VECTOR int64_t slopes(const struct row *from, const bool is_wide, int64_t n, int64_t *saturated)
{
	struct row copy = *from;
	const struct row *row = &copy;
	copy.to.shift = is_wide ? 0 : from->to.shift; /* what is wide comes rounded */
	struct rounding r = rounding_of(&row->to, 0);
	vector counts = vector_set(0);
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		counts = slope_element(row, &r, is_wide, i, VECTOR_N, counts);
	if (VECTOR_TAILS && i < n) {
		counts = slope_element(row, &r, is_wide, i, n - i, counts);
		i = n;
	}
	*saturated += vector_total(counts);
	return i;
}

static int64_t run_slope(const struct row *row, int64_t n, int64_t *saturated)
{
	return row->scale != 0 ? slopes(row, true, n, saturated) : slopes(row, false, n, saturated);
}

VECTOR bool is_narrow(const struct row_source *source)
{
	return source->bytes == 1 || (source->bytes == 0 && source->value == (int8_t)source->value);
}

struct quotient_counts {
	vector saturated, zeros;
};

/* What is divided by zero has the container's end of its sign for a value, which nothing has to saturate. */
VECTOR void quotient_element(const struct row *row, const struct rounding *r, int64_t i, int64_t n,
			     struct quotient_counts *counts)
{
	vector a = source_at(&row->in1, i, n), b = source_at(&row->in2, i, n);
	vector past = vector_left(a, vector_set(15)), guard = vector_set(ROW_GUARD_BITS);
	vector end = vector_left(vector_min(vector_max(past, r->low), r->high), guard);
	double scale = (double)row->in1_unit / (double)row->in2_unit;
	bool bytes = is_narrow(&row->in1) && is_narrow(&row->in2) && r->bytes == 1;
	vector x = bytes ? vector_quotient8(a, b, scale) : vector_quotient16(a, b, scale);
	x = rounded(r, vector_if_zero(b, x, end));
	store_at(row->out, r->bytes, i, limited(r, x), n);
	counts->saturated = vector_count_outside(counts->saturated, x, r->low, r->high, n);
	counts->zeros = vector_count_zeros(counts->zeros, b, n);
}

static int64_t run_quotient(const struct row *row, int64_t n, int64_t *saturated)
{
	struct rounding r = rounding_of(&row->to, 0);
	struct quotient_counts counts = {vector_set(0), vector_set(0)};
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		quotient_element(row, &r, i, VECTOR_N, &counts);
	if (VECTOR_TAILS && i < n) {
		quotient_element(row, &r, i, n - i, &counts);
		i = n;
	}
	*saturated += vector_total(counts.saturated);
	*row->zeros += vector_total(counts.zeros);
	return i;
}

VECTOR void shift_element(const struct row *row, vector mask, int64_t i, int64_t n)
{
	vector x = vector_and(source_at(&row->in1, i, n), mask), zero = vector_set(0);
	/* The amount is the low 8 bits, signed. */
	vector amount = vector_left(source_at(&row->in2, i, n), vector_set(24));
	amount = vector_right(amount, vector_set(24));
	x = vector_left(x, vector_max(amount, zero));
	x = vector_right(x, vector_sub(zero, vector_min(amount, zero)));
	store_at(row->out, row->to.bytes, i, x, n);
}

/* Words by a constant. */
VECTOR int64_t shift_words(const struct row *from, const bool logical, int64_t n)
{
	const struct row row = *from;
	int amount = (int8_t)row.in2.value;
	unsigned left = amount > 0 ? (unsigned)amount : 0, right = amount < 0 ? (unsigned)-amount : 0;
	int64_t end = n * 2, i = 0;
	for (; VECTOR_TAILS ? i < end : i + VECTOR_BYTES <= end; i += VECTOR_BYTES) {
		vector x = vector_load_raw((const uint8_t *)row.in1.data + i, end - i);
		x = amount > 0 ? vector_words_left(x, left)
		    : logical  ? vector_words_logical_right(x, right)
			       : vector_words_right(x, right);
		vector_store_raw((uint8_t *)row.out + i, x, end - i);
	}
	return i < end ? i / 2 : n;
}

VECTOR bool is_words_shift(const struct row *row)
{
	return row->in1.bytes == 2 && row->to.bytes == 2 && row->in2.bytes == 0;
}

VECTOR int64_t shift_row(const struct row *row, int32_t mask, int64_t n)
{
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		shift_element(row, vector_set(mask), i, VECTOR_N);
	if (VECTOR_TAILS && i < n) {
		shift_element(row, vector_set(mask), i, n - i);
		i = n;
	}
	return i;
}

static int64_t run_arithmetic_shift(const struct row *row, int64_t n, int64_t *saturated)
{
	(void)saturated;
	if (is_words_shift(row) && row->in1.mask == -1)
		return shift_words(row, false, n);
	return shift_row(row, -1, n);
}

static int64_t run_logical_shift(const struct row *row, int64_t n, int64_t *saturated)
{
	(void)saturated;
	if (is_words_shift(row))
		return shift_words(row, true, n);
	return shift_row(row, 0xffff, n);
}

VECTOR vector from_real(const struct row *row, int64_t i, int64_t n)
{
	return vector_of_reals((const float *)row->in1.data + i, (float)row->scale, row->to.rounding, n);
}

static int64_t run_from_real(const struct row *row, int64_t n, int64_t *saturated)
{
	struct row rounded_row = *row;
	rounded_row.to.shift = 0;
	return each(&rounded_row, from_real, 0, n, saturated);
}

static int64_t run_to_real(const struct row *row, int64_t n, int64_t *saturated)
{
	const struct row copy = *row;
	int64_t i = 0;
	(void)saturated;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		vector_store_reals((float *)row->out + i, source_at(&copy.in1, i, VECTOR_N), (float)row->scale,
				   VECTOR_N);
	if (VECTOR_TAILS && i < n) {
		vector_store_reals((float *)row->out + i, source_at(&copy.in1, i, n - i), (float)row->scale,
				   n - i);
		i = n;
	}
	return i;
}

const struct rows VECTOR_NAME(rows) = {
#define ROW(name, value) .name = run_##name,
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
};
