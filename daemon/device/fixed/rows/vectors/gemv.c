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

/* ---- a row of weights for each sum ---- */

/* Adds the products of terms [k, end) of some rows: a vector of sums for each of them, and where the vector is
 * taken by its bytes, as many with the high ones. */
VECTOR void gemv_add_rows(const struct gemv *g, const uint8_t *const *rows, const int n_rows, int64_t k,
			  int64_t end, const unsigned bytes, const unsigned weight_bytes, vector *sums)
{
	const bool split = bytes + weight_bytes == 4;
	for (; k < end; k += VECTOR_WORDS) {
		int64_t n = gemv_least(end - k, VECTOR_WORDS);
		vector x = gemv_words(g->vector, bytes, k, n), high = x;
		if (split) {
			high = vector_words_high(x);
			x = vector_words_low(x);
		}
		VECTOR_UNROLL
		for (int r = 0; r < n_rows; r++) {
			vector weights = gemv_words(rows[r], weight_bytes, k, n);
			sums[r] = vector_add_pairs(sums[r], weights, x);
			if (split)
				sums[n_rows + r] = vector_add_pairs(sums[n_rows + r], weights, high);
		}
	}
}

VECTOR int64_t gemv_rows_of(const struct gemv *from, const unsigned bytes, const unsigned weight_bytes, int64_t n,
			    int64_t *to)
{
	const bool split = bytes + weight_bytes == 4;
	const int n_rows = split ? VECTOR_N / 2 : VECTOR_N;
	const struct gemv g = *from;
	int64_t end = VECTOR_TAILS ? g.n_terms : g.n_terms / VECTOR_WORDS * VECTOR_WORDS;
	for (int64_t i = 0; i < n; i += n_rows) {
		const uint8_t *rows[VECTOR_N];
		int64_t totals[VECTOR_N] = {0};
		/* Past the last row that one again. */
		for (int r = 0; r < n_rows; r++)
			rows[r] = (const uint8_t *)g.weights +
				  gemv_least(i + r, n - 1) * g.row * (int64_t)weight_bytes;
		for (int64_t k = 0; k < end; k += GEMV_SEGMENT) {
			vector sums[VECTOR_N];
			VECTOR_UNROLL
			for (int r = 0; r < VECTOR_N; r++)
				sums[r] = vector_set(0);
			gemv_add_rows(&g, rows, n_rows, k, gemv_least(end, k + GEMV_SEGMENT), bytes, weight_bytes,
				      sums);
			vector each = vector_sum_each(sums);
			vector_add_wide(totals, each, split ? vector_rotate(each, VECTOR_N / 2) : vector_set(0),
					n_rows);
		}
		for (int64_t r = 0; r < gemv_least(n - i, n_rows); r++)
			to[i + r] += totals[r];
	}
	return end;
}

static int64_t gemv_run_rows(const struct gemv *g, int64_t n, int64_t *sums)
{
	if (g->vector_bytes == 1)
		return gemv_rows_of(g, 1, 1, n, sums);
	return g->weight_bytes == 1 ? gemv_rows_of(g, 2, 1, n, sums) : gemv_rows_of(g, 2, 2, n, sums);
}

/* ---- a column of weights for each sum ---- */

/* Terms k and k + 1, or k and 0, in each element; `high`: their high bytes, else the low ones. */
VECTOR vector gemv_pair(const struct gemv *g, int64_t k, const unsigned bytes, const bool split, const bool high)
{
	int32_t pair[2] = {0, 0};
	for (int i = 0; i < 2 && k + i < g->n_terms; i++) {
		pair[i] = bytes == 1 ? ((const int8_t *)g->vector)[k + i] : ((const int16_t *)g->vector)[k + i];
		if (split)
			pair[i] = high ? pair[i] >> 8 : pair[i] & 0xff;
	}
	return vector_set((int32_t)(((uint32_t)pair[0] & 0xffff) | (uint32_t)pair[1] << 16));
}

/* Columns [j, j + n), n at most `blocks` times VECTOR_WORDS. */
VECTOR void gemv_block(const struct gemv *g, int64_t j, int64_t n, const int blocks, const unsigned bytes,
		       const unsigned weight_bytes, int64_t *to)
{
	const bool split = bytes + weight_bytes == 4;
	const uint8_t *weights = (const uint8_t *)g->weights + j * (int64_t)weight_bytes;
	for (int64_t first = 0; first < g->n_terms; first += GEMV_SEGMENT) {
		int64_t end = gemv_least(g->n_terms, first + GEMV_SEGMENT);
		vector low[2 * GEMV_BLOCKS], high[2 * GEMV_BLOCKS];
		VECTOR_UNROLL
		for (int b = 0; b < 2 * blocks; b++)
			low[b] = high[b] = vector_set(0);
		for (int64_t k = first; k < end; k += 2) {
			vector x = gemv_pair(g, k, bytes, split, false), y = gemv_pair(g, k, bytes, split, true);
			const uint8_t *row = weights + k * g->row * (int64_t)weight_bytes;
			const uint8_t *next = k + 1 < end ? row + g->row * (int64_t)weight_bytes : row;
			VECTOR_UNROLL
			for (int b = 0; b < blocks; b++) {
				int64_t at = (int64_t)b * VECTOR_WORDS;
				vector one = gemv_words(row, weight_bytes, at, n - at);
				vector two = gemv_words(next, weight_bytes, at, n - at);
				vector lower = vector_words_lower(one, two), upper = vector_words_upper(one, two);
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
			vector_add_wide(to + j + at,
					b % 2 ? vector_words_second(l[0], l[1]) : vector_words_first(l[0], l[1]),
					b % 2 ? vector_words_second(h[0], h[1]) : vector_words_first(h[0], h[1]),
					n - at);
		}
	}
}

VECTOR int64_t gemv_columns_of(const struct gemv *from, const unsigned bytes, const unsigned weight_bytes,
			       int64_t n, int64_t *to)
{
	const struct gemv g = *from;
	int64_t end = VECTOR_TAILS ? n : n / VECTOR_WORDS * VECTOR_WORDS, j = 0;
	for (; j + GEMV_BLOCKS * VECTOR_WORDS <= end; j += GEMV_BLOCKS * VECTOR_WORDS)
		gemv_block(&g, j, GEMV_BLOCKS * VECTOR_WORDS, GEMV_BLOCKS, bytes, weight_bytes, to);
	for (; j < end; j += VECTOR_WORDS)
		gemv_block(&g, j, gemv_least(end - j, VECTOR_WORDS), 1, bytes, weight_bytes, to);
	return end;
}

static int64_t gemv_run_columns(const struct gemv *g, int64_t n, int64_t *sums)
{
	if (g->vector_bytes == 1)
		return gemv_columns_of(g, 1, 1, n, sums);
	return g->weight_bytes == 1 ? gemv_columns_of(g, 2, 1, n, sums) : gemv_columns_of(g, 2, 2, n, sums);
}

const struct gemv_functions VECTOR_NAME(gemv) = {gemv_run_rows, gemv_run_columns};
