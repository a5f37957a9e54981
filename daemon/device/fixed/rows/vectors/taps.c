/* Rows of taps. Vectors are always whole: what is past the row is read and written as taps.h says. */
#include "daemon/device/fixed/rows/taps.h"

#include <stdbool.h>

#include "daemon/device/fixed/rows/vectors/vector.h"

enum { TAPS_FEW = 6 }; /* pairs of a window of 3 x 3, whose weights stay in registers */

struct taps_sum {
	vector low, high;
};

VECTOR struct taps_sum taps_bias(const struct taps *taps)
{
	return (struct taps_sum){vector_set(taps->low_bias), vector_set(taps->high_bias)};
}

VECTOR void taps_add(struct taps_sum *sum, vector pairs, vector low, vector high, const bool split)
{
	sum->low = vector_add_pairs(sum->low, pairs, low);
	if (split)
		sum->high = vector_add_pairs(sum->high, pairs, high);
}

VECTOR vector taps_join(struct taps_sum sum, const bool split)
{
	if (!split)
		return sum.low;
	vector high = vector_add(sum.high, vector_right(sum.low, vector_set(8)));
	vector mark = vector_min(vector_and(sum.low, vector_set(0xff)), vector_set(1));
	return vector_or(vector_left(high, vector_set(8 - TAPS_DROP)), mark);
}

/* Pairs at in, in + stride, … */
VECTOR vector taps_load(const int16_t *in, int64_t stride)
{
	return stride == 2 ? vector_load32(in, VECTOR_N) : vector_load_pairs(in, stride);
}

/* Neighbouring sums, of every second one in a vector: the pairs of each are elements of 32 bits as they lie. */
VECTOR void taps_neighbours(const struct taps *taps, int64_t pairs, const vector *low, const vector *high,
			    const bool split, const int16_t *in, int32_t *sums)
{
	struct taps_sum even = taps_bias(taps), odd = even;
	VECTOR_UNROLL
	for (int64_t k = 0; k < pairs; k++) {
		const int16_t *from = in + taps->offsets[k];
		vector by_low = low ? low[k] : vector_set(taps->low[k]), by_high = by_low;
		if (split)
			by_high = high ? high[k] : vector_set(taps->high[k]);
		taps_add(&even, vector_load32(from, VECTOR_N), by_low, by_high, split);
		taps_add(&odd, vector_load32(from + 1, VECTOR_N), by_low, by_high, split);
	}
	vector a = taps_join(even, split), b = taps_join(odd, split);
	vector lower = vector_lower(a, b), upper = vector_upper(a, b);
	vector_store32(sums, vector_words_first(lower, upper), VECTOR_N);
	vector_store32(sums + VECTOR_N, vector_words_second(lower, upper), VECTOR_N);
}

VECTOR void taps_distant(const struct taps *taps, int64_t stride, int64_t pairs, const vector *low,
			 const vector *high, const bool split, const int16_t *in, int32_t *sums)
{
	struct taps_sum sum = taps_bias(taps);
	VECTOR_UNROLL
	for (int64_t k = 0; k < pairs; k++) {
		vector by_low = low ? low[k] : vector_set(taps->low[k]), by_high = by_low;
		if (split)
			by_high = high ? high[k] : vector_set(taps->high[k]);
		taps_add(&sum, taps_load(in + taps->offsets[k], stride), by_low, by_high, split);
	}
	vector_store32(sums, taps_join(sum, split), VECTOR_N);
}

VECTOR void taps_sums(const struct taps *taps, int64_t stride, int64_t pairs, const vector *low,
		      const vector *high, const bool split, int64_t n, int32_t *sums)
{
	if (stride == 1)
		for (int64_t j = 0; j < n; j += 2 * VECTOR_N)
			taps_neighbours(taps, pairs, low, high, split, taps->in + j, sums + j);
	else
		for (int64_t j = 0; j < n; j += VECTOR_N)
			taps_distant(taps, stride, pairs, low, high, split, taps->in + j * stride, sums + j);
}

/* The offsets are copied: the sums could change them. */
VECTOR void taps_few(const struct taps *from, int64_t stride, const bool split, int64_t n, int32_t *sums)
{
	int64_t offsets[TAPS_FEW];
	struct taps taps = *from;
	vector low[TAPS_FEW], high[TAPS_FEW];
	taps.offsets = offsets;
	VECTOR_UNROLL
	for (int k = 0; k < TAPS_FEW; k++) {
		offsets[k] = from->offsets[k];
		low[k] = vector_set(from->low[k]);
		high[k] = split ? vector_set(from->high[k]) : low[k];
	}
	taps_sums(&taps, stride, TAPS_FEW, low, high, split, n, sums);
}

VECTOR void taps_by(const struct taps *from, int64_t stride, const bool split, int64_t n, int32_t *sums)
{
	struct taps taps = *from;
	if (taps.n == TAPS_FEW)
		taps_few(&taps, stride, split, n, sums);
	else
		taps_sums(&taps, stride, taps.n, NULL, NULL, split, n, sums);
}

VECTOR void taps_any(const struct taps *taps, const bool split, int64_t n, int32_t *sums)
{
	if (taps->stride == 1)
		taps_by(taps, 1, split, n, sums);
	else if (taps->stride == 2)
		taps_by(taps, 2, split, n, sums);
	else
		taps_sums(taps, taps->stride, taps->n, NULL, NULL, split, n, sums);
}

void VECTOR_NAME(taps)(const struct taps *taps, int64_t n, int32_t *sums)
{
	if (taps->high)
		taps_any(taps, true, n, sums);
	else
		taps_any(taps, false, n, sums);
}
