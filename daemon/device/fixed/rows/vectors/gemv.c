/* The products of one instruction set.
 *
 * Words are multiplied in pairs into 32 bits. Where both sides have 16 bits the vector is taken by its bytes, the
 * high one with the sign, so that a product is below 2^23 and the sums of GEMV_SEGMENT of them stay in 32 bits;
 * those of 16 by 8 bits and of 8 by 8 do so as they are. */
#include "daemon/device/fixed/rows/gemv.h"

#include <string.h>

#include "daemon/device/fixed/rows/vectors/vector.h"

enum {
	GEMV_SEGMENT = 256,
	GEMV_BLOCKS = 4, /* of VECTOR_WORDS columns side by side */
};

VECTOR int64_t gemv_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

VECTOR vector gemv_words(const void *from, unsigned bytes, int64_t i, int64_t n)
{
	return bytes == 1 ? vector_load_words8((const int8_t *)from + i, n)
			  : vector_load_words16((const int16_t *)from + i, n);
}

/* Terms k and k + 1, or k and 0, in each element. */
VECTOR vector gemv_two(const struct gemv *g, int64_t k, const unsigned bytes)
{
	int16_t two[2] = {0, 0};
	int32_t both;
	if (bytes == 2 && k + 1 < g->n_terms)
		memcpy(two, (const int16_t *)g->vector + k, sizeof(two));
	else
		for (int i = 0; i < 2 && k + i < g->n_terms; i++)
			two[i] = bytes == 1 ? ((const int8_t *)g->vector)[k + i]
					    : ((const int16_t *)g->vector)[k + i];
	memcpy(&both, two, sizeof(both));
	return vector_set(both);
}

/* Columns [j, j + n), n at most `blocks` times VECTOR_WORDS. */
VECTOR void gemv_block(const struct gemv *g, int64_t j, int64_t n, const int blocks, const unsigned bytes,
		       const unsigned weight_bytes, const bool pairs, int64_t *to)
{
	const bool split = bytes + weight_bytes == 4;
	const uint8_t *weights = (const uint8_t *)g->weights + j * (int64_t)weight_bytes * (pairs ? 2 : 1);
	for (int64_t first = 0; first < g->n_terms; first += GEMV_SEGMENT) {
		int64_t end = gemv_least(g->n_terms, first + GEMV_SEGMENT);
		vector low[2 * GEMV_BLOCKS], high[2 * GEMV_BLOCKS];
		VECTOR_UNROLL
		for (int b = 0; b < 2 * blocks; b++)
			low[b] = high[b] = vector_set(0);
		for (int64_t k = first; k < end; k += 2) {
			vector x = gemv_two(g, k, bytes), y = x;
			if (split) {
				y = vector_words_high(x);
				x = vector_words_low(x);
			}
			const uint8_t *row = weights + k * g->row * (int64_t)weight_bytes;
			const uint8_t *next = k + 1 < end ? row + g->row * (int64_t)weight_bytes : row;
			VECTOR_UNROLL
			for (int b = 0; b < blocks; b++) {
				int64_t at = (int64_t)b * VECTOR_WORDS;
				vector lower, upper;
				if (pairs) {
					lower = gemv_words(row, weight_bytes, 2 * at, 2 * (n - at));
					upper = gemv_words(row, weight_bytes, 2 * at + VECTOR_WORDS,
							   2 * (n - at) - VECTOR_WORDS);
				} else {
					vector one = gemv_words(row, weight_bytes, at, n - at);
					vector two = gemv_words(next, weight_bytes, at, n - at);
					lower = vector_words_lower(one, two);
					upper = vector_words_upper(one, two);
				}
				low[2 * b] = vector_add_pairs(low[2 * b], lower, x);
				low[2 * b + 1] = vector_add_pairs(low[2 * b + 1], upper, x);
				if (split) {
					high[2 * b] = vector_add_pairs(high[2 * b], lower, y);
					high[2 * b + 1] = vector_add_pairs(high[2 * b + 1], upper, y);
				}
			}
		}
		VECTOR_UNROLL
		for (int b = 0; b < 2 * blocks; b++) {
			int64_t at = (int64_t)b * VECTOR_N;
			if (at >= n)
				continue;
			const vector *l = low + b / 2 * 2, *h = high + b / 2 * 2;
			if (pairs)
				vector_add_wide(to + j + at, low[b], high[b], n - at);
			else
				vector_add_wide(
					to + j + at,
					b % 2 ? vector_words_second(l[0], l[1]) : vector_words_first(l[0], l[1]),
					b % 2 ? vector_words_second(h[0], h[1]) : vector_words_first(h[0], h[1]),
					n - at);
		}
	}
}

VECTOR int64_t gemv_columns_of(const struct gemv *from, const unsigned bytes, const unsigned weight_bytes,
			       const bool pairs, int64_t n, int64_t *to)
{
	const struct gemv g = *from;
	int64_t end = VECTOR_TAILS ? n : n / VECTOR_WORDS * VECTOR_WORDS, j = 0;
	/* What is split has twice as many sums: more would not fit into AVX2's registers. */
	for (; bytes + weight_bytes < 4 && j + 4 * VECTOR_WORDS <= end; j += 4 * VECTOR_WORDS)
		gemv_block(&g, j, 4 * VECTOR_WORDS, 4, bytes, weight_bytes, pairs, to);
	for (; j + 2 * VECTOR_WORDS <= end; j += 2 * VECTOR_WORDS)
		gemv_block(&g, j, 2 * VECTOR_WORDS, 2, bytes, weight_bytes, pairs, to);
	for (; j < end; j += VECTOR_WORDS)
		gemv_block(&g, j, gemv_least(end - j, VECTOR_WORDS), 1, bytes, weight_bytes, pairs, to);
	return end;
}

VECTOR int64_t gemv_pairs_or_not(const struct gemv *g, const unsigned bytes, const unsigned weight_bytes,
				 int64_t n, int64_t *sums)
{
	return g->pairs ? gemv_columns_of(g, bytes, weight_bytes, true, n, sums)
			: gemv_columns_of(g, bytes, weight_bytes, false, n, sums);
}

int64_t VECTOR_NAME(gemv)(const struct gemv *g, int64_t n, int64_t *sums)
{
	if (g->vector_bytes == 1)
		return gemv_pairs_or_not(g, 1, 1, n, sums);
	return g->weight_bytes == 1 ? gemv_pairs_or_not(g, 2, 1, n, sums) : gemv_pairs_or_not(g, 2, 2, n, sums);
}
