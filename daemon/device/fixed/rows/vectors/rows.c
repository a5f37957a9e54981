/* The rows of one instruction set. */
#include "daemon/device/fixed/rows/rows.h"

#include "daemon/device/fixed/rows/vectors/vector.h"
#include "daemon/device/fixed/rows/vectors/vector_rounding.h"
#include "daemon/device/fixed/rows/vectors/rows_raw.h"
#include "daemon/device/fixed/rows/vectors/rows_words.h"

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

struct counts {
	vector saturated, zeros;
};

/* The values of n elements from i on. */
typedef vector value_function(const struct row *row, int64_t i, int64_t n);
/* Makes results of them, or of what else the row has there. */
typedef void element_function(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			      int64_t n, struct counts *counts);

/* The row is copied: stores through a pointer to bytes could change it. */
VECTOR int64_t each_element(const struct row *from, element_function *element, value_function *value,
			    unsigned drop, int64_t n, int64_t *saturated)
{
	const struct row copy = *from, *row = &copy;
	struct rounding r = rounding_of(&row->to, drop);
	struct counts counts = {vector_set(0), vector_set(0)};
	int64_t i = 0;
	for (; i + VECTOR_N <= n; i += VECTOR_N)
		element(row, &r, value, i, VECTOR_N, &counts);
	if (VECTOR_TAILS && i < n) {
		element(row, &r, value, i, n - i, &counts);
		i = n;
	}
	*saturated += vector_total(counts.saturated);
	if (row->zeros)
		*row->zeros += vector_total(counts.zeros);
	return i;
}

VECTOR void rounded_element(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			    int64_t n, struct counts *counts)
{
	vector x = rounded(r, value(row, i, n));
	vector_store_containers(row->out, r->bytes, i, limited(r, x), n);
	counts->saturated = vector_count_outside(counts->saturated, x, r->low, r->high, n);
}

VECTOR int64_t each(const struct row *row, value_function *value, int64_t n, int64_t *saturated)
{
	return each_element(row, rounded_element, value, 0, n, saturated);
}

/* For values that come rounded. */
VECTOR int64_t each_result(const struct row *row, value_function *value, int64_t n, int64_t *saturated)
{
	struct row results = *row;
	results.to.shift = 0;
	return each(&results, value, n, saturated);
}

/* As many as there are whole vectors of words, and the rest one element each. */
VECTOR int64_t words(const struct row *row, words_function *value, value_function *narrow, int64_t n,
		     int64_t *saturated)
{
	int64_t done = words_row(row, value, n, saturated);
	if (done == n)
		return n;
	const struct row rest = row_after(row, done);
	return done + each(&rest, narrow, n - done, saturated);
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
	if (raw_fits(&one))
		return raw_row(&one, raw_first, NULL, n, saturated);
	if (row->in1.mask == -1 && row->in1.bytes + row->to.bytes <= 3 && words_fit(row, true))
		return words(row, words_requantize, requantize, n, saturated);
	return each(row, requantize, n, saturated);
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

/* Already rounded. */
VECTOR vector wide_sum(const struct row *row, int64_t i, int64_t n)
{
	vector a = source_at(&row->in1, i, n), b = source_at(&row->in2, i, n);
	b = row->sign > 0 ? b : vector_sub(vector_set(0), b);
	vector coarse = row->align.first_is_coarse ? a : b, fine = row->align.first_is_coarse ? b : a;
	const struct vector_scales scales = {row->scale, row->beside, row->alone};
	return vector_scaled_sum(coarse, fine, &scales, row->to.rounding);
}

static int64_t run_sum(const struct row *row, int64_t n, int64_t *saturated)
{
	if (row->scale != 0)
		return each_result(row, wide_sum, n, saturated);
	if (row->align.left == 0 && raw_fits(row) && row->sign > 0)
		return raw_row(row, vector_add_raw, vector_wrapped_add_raw, n, saturated);
	if (row->align.left == 0 && raw_fits(row))
		return raw_row(row, vector_sub_raw, vector_wrapped_sub_raw, n, saturated);
	if (words_is_byte(&row->in1) && words_is_byte(&row->in2) && words_fit(row, false))
		return words(row, words_sum, sum, n, saturated);
	return each(row, sum, n, saturated);
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
	if (words_is_byte(&row->in1) && words_is_byte(&row->in2) && words_fit(row, false))
		return words(row, words_product, product, n, saturated);
	if (row->scale == 0)
		return each(row, product, n, saturated);
	return each_result(row, wide_product, n, saturated);
}

/* Already rounded. */
VECTOR vector mean(const struct row *row, int64_t i, int64_t n)
{
	return vector_scaled_mean(source_at(&row->in1, i, n), row->in2.value, row->scale, row->to.rounding);
}

static int64_t run_mean(const struct row *row, int64_t n, int64_t *saturated)
{
	return each_result(row, mean, n, saturated);
}

VECTOR vector smaller(const struct row *row, int64_t i, int64_t n)
{
	return vector_min(source_at(&row->in1, i, n), source_at(&row->in2, i, n));
}

static int64_t run_smaller(const struct row *row, int64_t n, int64_t *saturated)
{
	if (raw_fits(row))
		return raw_row(row, vector_min_raw, NULL, n, saturated);
	return each(row, smaller, n, saturated);
}

VECTOR vector larger(const struct row *row, int64_t i, int64_t n)
{
	return vector_max(source_at(&row->in1, i, n), source_at(&row->in2, i, n));
}

static int64_t run_larger(const struct row *row, int64_t n, int64_t *saturated)
{
	if (raw_fits(row))
		return raw_row(row, vector_max_raw, NULL, n, saturated);
	return each(row, larger, n, saturated);
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
	if (words_is_byte(&row->in1) && words_is_byte(&row->in2) && words_is_byte(&row->acc) &&
	    words_fit(row, false))
		return words(row, words_mac, mac, n, saturated);
	return each_element(row, rounded_element, mac, row->drop, n, saturated);
}

/* Zero where in1 is not negative, so that only the rest can be counted. */
VECTOR void slope_of(const struct row *row, const struct rounding *r, const bool is_wide, int64_t i, int64_t n,
		     struct counts *counts)
{
	vector in = source_at(&row->in1, i, n), slope = source_at(&row->in2, i, n);
	vector below = vector_min(in, vector_set(0));
	vector x = is_wide ? vector_scaled(below, slope, row->scale, row->to.rounding)
			   : rounded(r, vector_mul(below, slope));
	vector_store_containers(row->out, r->bytes, i, vector_if_negative(in, limited(r, x)), n);
	counts->saturated = vector_count_outside(counts->saturated, x, r->low, r->high, n);
}

VECTOR void slope_element(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			  int64_t n, struct counts *counts)
{
	(void)value;
	slope_of(row, r, false, i, n, counts);
}

VECTOR void wide_slope_element(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			       int64_t n, struct counts *counts)
{
	(void)value;
	slope_of(row, r, true, i, n, counts);
}

static int64_t run_slope(const struct row *row, int64_t n, int64_t *saturated)
{
	return row->scale != 0 ? each_element(row, wide_slope_element, NULL, 0, n, saturated)
			       : each_element(row, slope_element, NULL, 0, n, saturated);
}

VECTOR bool is_narrow(const struct row_source *source)
{
	return source->bytes == 1 || (source->bytes == 0 && source->value == (int8_t)source->value);
}

/* What is divided by zero has the container's end of its sign for a value, which nothing has to saturate. */
VECTOR void quotient_element(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			     int64_t n, struct counts *counts)
{
	vector a = source_at(&row->in1, i, n), b = source_at(&row->in2, i, n);
	vector past = vector_left(a, vector_set(15)), guard = vector_set(ROW_GUARD_BITS);
	vector end = vector_left(vector_min(vector_max(past, r->low), r->high), guard);
	double scale = (double)row->in1_unit / (double)row->in2_unit;
	bool bytes = is_narrow(&row->in1) && is_narrow(&row->in2) && r->bytes == 1;
	vector x = bytes ? vector_quotient8(a, b, scale) : vector_quotient16(a, b, scale);
	(void)value;
	x = rounded(r, vector_if_zero(b, x, end));
	vector_store_containers(row->out, r->bytes, i, limited(r, x), n);
	counts->saturated = vector_count_outside(counts->saturated, x, r->low, r->high, n);
	counts->zeros = vector_count_zeros(counts->zeros, b, n);
}

static int64_t run_quotient(const struct row *row, int64_t n, int64_t *saturated)
{
	return each_element(row, quotient_element, NULL, 0, n, saturated);
}

VECTOR vector shifted(const struct row *row, int32_t mask, int64_t i, int64_t n)
{
	vector x = vector_and(source_at(&row->in1, i, n), vector_set(mask)), zero = vector_set(0);
	/* The amount is the low 8 bits, signed. */
	vector amount = vector_left(source_at(&row->in2, i, n), vector_set(24));
	amount = vector_right(amount, vector_set(24));
	x = vector_left(x, vector_max(amount, zero));
	return vector_right(x, vector_sub(zero, vector_min(amount, zero)));
}

VECTOR vector arithmetic_shift(const struct row *row, int64_t i, int64_t n)
{
	return shifted(row, -1, i, n);
}

VECTOR vector logical_shift(const struct row *row, int64_t i, int64_t n)
{
	return shifted(row, 0xffff, i, n);
}

VECTOR void low_bits(const struct row *row, const struct rounding *r, value_function *value, int64_t i, int64_t n,
		     struct counts *counts)
{
	(void)counts;
	vector_store_containers(row->out, r->bytes, i, value(row, i, n), n);
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

static int64_t run_arithmetic_shift(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_words_shift(row) && row->in1.mask == -1)
		return shift_words(row, false, n);
	return each_element(row, low_bits, arithmetic_shift, 0, n, saturated);
}

static int64_t run_logical_shift(const struct row *row, int64_t n, int64_t *saturated)
{
	if (is_words_shift(row))
		return shift_words(row, true, n);
	return each_element(row, low_bits, logical_shift, 0, n, saturated);
}

VECTOR vector from_real(const struct row *row, int64_t i, int64_t n)
{
	return vector_of_reals((const float *)row->in1.data + i, (float)row->scale, row->to.rounding, n);
}

static int64_t run_from_real(const struct row *row, int64_t n, int64_t *saturated)
{
	return each_result(row, from_real, n, saturated);
}

VECTOR void real_element(const struct row *row, const struct rounding *r, value_function *value, int64_t i,
			 int64_t n, struct counts *counts)
{
	(void)r, (void)value, (void)counts;
	vector_store_reals((float *)row->out + i, source_at(&row->in1, i, n), (float)row->scale, n);
}

static int64_t run_to_real(const struct row *row, int64_t n, int64_t *saturated)
{
	return each_element(row, real_element, NULL, 0, n, saturated);
}

const struct rows VECTOR_NAME(rows) = {
#define ROW(name, value) .name = run_##name,
#include "daemon/device/fixed/rows/rows.def"
#undef ROW
};
