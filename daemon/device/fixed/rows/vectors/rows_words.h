/* Rows of values of 16 bits, twice as many at once as elements of 32: 2 * VECTOR_WORDS of them at a time. A
 * template over the vectors that were included before it. */
#ifndef DEVICE_ROWS_WORDS_H
#define DEVICE_ROWS_WORDS_H

#include "daemon/device/fixed/round.h"
#include "daemon/device/fixed/rows/rows.h"

enum { WORDS_N = 2 * VECTOR_WORDS };

typedef struct vector_pair words_function(const struct row *row, int64_t i);

/* Whether sources and values have 16 bits at most, and so have results before they are saturated. The largest
 * magnitude of `signed_most` only negative ones have. */
VECTOR bool words_fit(const struct row *row, bool signed_most)
{
	int64_t shift = row->to.shift, left = shift < 0 ? -shift : 0;
	return shift <= 15 && left <= 8 && row->most <= INT16_MAX + signed_most &&
	       row->most << left <= INT16_MAX + signed_most && (row->to.bytes == 1 || row->to.low < 0);
}

VECTOR bool words_is_byte(const struct row_source *source)
{
	return source->bytes == 1 || (source->bytes == 0 && source->value == (int16_t)source->value);
}

VECTOR struct vector_pair words_at(const struct row_source *source, int64_t i)
{
	if (source->bytes == 0)
		return (struct vector_pair){vector_set_raw(source->value, 2), vector_set_raw(source->value, 2)};
	if (source->bytes == 2)
		return vector_pair_load16((const int16_t *)source->data + i);
	vector bytes = vector_load_raw((const int8_t *)source->data + i, VECTOR_BYTES);
	bool is_unsigned = source->mask >= 0;
	return (struct vector_pair){vector_bytes_lower(bytes, is_unsigned),
				    vector_bytes_upper(bytes, is_unsigned)};
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
		vector bytes = vector_max_raw(vector_words_pack(x.low, x.high), vector_set_raw(low, 1), 1);
		bytes = vector_min_raw(bytes, vector_set_raw(high, 1), 1);
		vector_store_raw((uint8_t *)row->out + i, bytes, VECTOR_BYTES);
		return;
	}
	x.low = vector_min_raw(vector_max_raw(x.low, vector_set_raw(low, 2), 2), vector_set_raw(high, 2), 2);
	x.high = vector_min_raw(vector_max_raw(x.high, vector_set_raw(low, 2), 2), vector_set_raw(high, 2), 2);
	if (row->to.bytes == 2)
		vector_pair_store16((int16_t *)row->out + i, x);
	else
		vector_store_raw((uint8_t *)row->out + i, vector_words_pack_unsigned(x.low, x.high), VECTOR_BYTES);
}

VECTOR int64_t words_in_mode(enum npumem_rounding rounding, const struct row *from, words_function *value,
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

/* As many whole vectors as there are; returns how many values. */
VECTOR int64_t words_row(const struct row *row, words_function *value, int64_t n, int64_t *saturated)
{
	enum npumem_rounding rounding = row->to.shift > 0 ? row->to.rounding : NPUMEM_UP;
	return ROUND_BY_MODE(rounding, words_in_mode, row, value, n, saturated);
}

#endif
