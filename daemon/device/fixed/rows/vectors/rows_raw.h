/* Rows of containers as they lie, many times as many at once as elements of 32 bits: where nothing is left to
 * round. A template over the vectors that were included before it. */
#ifndef DEVICE_ROWS_RAW_H
#define DEVICE_ROWS_RAW_H

#include "daemon/device/fixed/rows/rows.h"

VECTOR bool raw_is_source(const struct row *row, const struct row_source *source)
{
	if (source->bytes == 0)
		return source->value >= row->to.low && source->value <= row->to.high;
	return source->bytes == row->to.bytes && source->mask == -1;
}

/* Whether in1, in2 and the values before rounding have the container and the format of the result. */
VECTOR bool raw_fits(const struct row *row)
{
	return row->to.shift == 0 && row->to.low < 0 && raw_is_source(row, &row->in1) &&
	       raw_is_source(row, &row->in2);
}

typedef vector raw_function(vector a, vector b, unsigned bytes);

/* `kept` of in1 and in2, in the limits. `wrapped` is what it would be without saturation, which is counted where
 * they differ; NULL: it does not saturate, and is the same again of what it gave. */
VECTOR int64_t raw_each(const struct row *from, raw_function *kept, raw_function *wrapped, const unsigned bytes,
			int64_t n, int64_t *saturated)
{
	const struct row row = *from;
	vector low = vector_set_raw((int32_t)row.to.limit_low, bytes);
	vector high = vector_set_raw((int32_t)row.to.limit_high, bytes);
	vector first = vector_set_raw(row.in1.value, bytes), second = vector_set_raw(row.in2.value, bytes);
	const bool again = !VECTOR_TAILS && !wrapped;
	int64_t end = n * bytes, i = 0, outside = 0;
	for (; i < end && (VECTOR_TAILS || (again ? 0 : i) + VECTOR_BYTES <= end); i += VECTOR_BYTES) {
		if (again && i + VECTOR_BYTES > end)
			i = end - VECTOR_BYTES;
		vector x = row.in1.bytes ? vector_load_raw((const uint8_t *)row.in1.data + i, end - i) : first;
		vector y = row.in2.bytes ? vector_load_raw((const uint8_t *)row.in2.data + i, end - i) : second;
		vector z = kept(x, y, bytes);
		if (wrapped)
			outside += vector_count_other_raw(z, wrapped(x, y, bytes), bytes, end - i);
		z = vector_min_raw(vector_max_raw(z, low, bytes), high, bytes);
		vector_store_raw((uint8_t *)row.out + i, z, end - i);
	}
	*saturated += outside;
	return i < end ? i / bytes : n;
}

VECTOR int64_t raw_row(const struct row *row, raw_function *kept, raw_function *wrapped, int64_t n,
		       int64_t *saturated)
{
	return row->to.bytes == 1 ? raw_each(row, kept, wrapped, 1, n, saturated)
				  : raw_each(row, kept, wrapped, 2, n, saturated);
}

VECTOR vector raw_first(vector a, vector b, unsigned bytes)
{
	(void)b, (void)bytes;
	return a;
}

#endif
