/* Rows of taps: a template over the vectors that were included before it. TAPS_ROW names the function, which makes
 * as many of n sums as it can and returns how many. */
#include "daemon/device/fixed/rows/taps.h"

/* Elements at, at + stride, …, stride being 1 or 2. Every second one is the low half of what is loaded. */
VECTOR vector taps_load(const struct taps *taps, int64_t stride, int64_t at, int64_t n)
{
	vector half = vector_set(taps->bytes == 1 ? 24 : 16);
	const uint8_t *from = (const uint8_t *)taps->in + at * taps->bytes;
	if (stride == 1)
		return taps->bytes == 1 ? vector_load8(from, n) : vector_load16(from, n);
	vector both = taps->bytes == 1 ? vector_load16(from, n) : vector_load32(from, n);
	return vector_right(vector_left(both, half), half);
}

VECTOR void taps_sum(const struct taps *taps, int64_t stride, int64_t j, int64_t n, int32_t *sums)
{
	vector sum = vector_set(0);
	for (int64_t k = 0; k < taps->n; k++) {
		vector x = taps_load(taps, stride, j * stride + taps->offsets[k], n);
		sum = vector_add(sum, vector_mul(x, vector_set(taps->weights[k])));
	}
	vector_store32(sums + j, sum, n);
}

VECTOR int64_t taps_sums(const struct taps *taps, int64_t stride, int64_t n, int32_t *sums)
{
	int64_t j = 0;
	for (; j + VECTOR_N <= n; j += VECTOR_N)
		taps_sum(taps, stride, j, VECTOR_N, sums);
	if (VECTOR_TAILS && j < n) {
		taps_sum(taps, stride, j, n - j, sums);
		j = n;
	}
	return j;
}

int64_t TAPS_ROW(const struct taps *taps, int64_t n, int32_t *sums);
int64_t TAPS_ROW(const struct taps *taps, int64_t n, int32_t *sums)
{
	if (taps->stride == 1)
		return taps_sums(taps, 1, n, sums);
	/* The last sum's load would have an element past it. */
	return taps->stride == 2 ? taps_sums(taps, 2, n - 1, sums) : 0;
}
