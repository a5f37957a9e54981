/* Pixels as rows with AVX-512: weights are vectors of 16 output channels, and a pixel's terms are broadcast. 27
 * sums, 3 vectors and a pixel are 31 registers, and 12 loads feed 27 products. */
#ifndef DEVICE_UKERNEL_AVX512_PIXELS_H
#define DEVICE_UKERNEL_AVX512_PIXELS_H

#include "daemon/device/engine/ukernel_avx512.h"

/* DP is vpdpbusd or vpdpwssd. Sums are left as they lie in registers: with more in this function GCC 12 keeps them
 * in memory. */
#define UKERNEL_AVX512_PIXEL_SUM(DP, rows, vectors)                                                               \
	static void sum_##rows##_##vectors(const struct ukernel_pixels *block, int32_t *sums)                     \
	{                                                                                                         \
		const uint32_t *offsets = block->offsets;                                                         \
		const uint8_t *weights = block->weights, *data[rows];                                             \
		int64_t skipped = block->way - block->n_steps;                                                    \
		__m512i acc[rows][vectors], w[vectors];                                                           \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			data[r] = block->data + block->at[r];                                                     \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				acc[r][v] = _mm512_setzero_si512();                                               \
		}                                                                                                 \
		for (int64_t run = 0; run < block->n_runs; run++) {                                               \
			for (const uint32_t *end = offsets + block->n_steps; offsets < end;                       \
			     offsets++, weights += 64 * vectors) {                                                \
				UKERNEL_UNROLL                                                                    \
				for (unsigned v = 0; v < vectors; v++)                                            \
					w[v] = _mm512_loadu_si512(weights + 64 * v);                              \
				UKERNEL_UNROLL                                                                    \
				for (unsigned r = 0; r < rows; r++) {                                             \
					int32_t terms;                                                            \
					memcpy(&terms, data[r] + *offsets, sizeof(terms));                        \
					__m512i x = _mm512_set1_epi32(terms);                                     \
					UKERNEL_UNROLL                                                            \
					for (unsigned v = 0; v < vectors; v++)                                    \
						acc[r][v] = DP(acc[r][v], x, w[v]);                               \
				}                                                                                 \
			}                                                                                         \
			offsets += skipped;                                                                       \
			weights += skipped * 64 * vectors;                                                        \
		}                                                                                                 \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			int32_t *to = sums + block->to[r] * UKERNEL_OUTPUTS;                                      \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				_mm512_store_si512(                                                               \
					to + UKERNEL_VECTOR * v,                                                  \
					_mm512_add_epi32(acc[r][v],                                               \
							 _mm512_load_si512(block->start + UKERNEL_VECTOR * v)));  \
		}                                                                                                 \
	}
#define UKERNEL_AVX512_PIXEL_SUMS(DP, rows)                                                                       \
	UKERNEL_AVX512_PIXEL_SUM(DP, rows, 1)                                                                     \
	UKERNEL_AVX512_PIXEL_SUM(DP, rows, 2)                                                                     \
	UKERNEL_AVX512_PIXEL_SUM(DP, rows, 3)

/* Defines pixels(). */
#define UKERNEL_AVX512_PIXELS(DP)                                                                                 \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 1)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 2)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 3)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 4)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 5)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 6)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 7)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 8)                                                                          \
	UKERNEL_AVX512_PIXEL_SUMS(DP, 9)                                                                          \
	static void pixels(const struct ukernel_pixels *block, int32_t *sums)                                     \
	{                                                                                                         \
		typedef void sum_function(const struct ukernel_pixels *, int32_t *);                              \
		static sum_function *const all[UKERNEL_PIXELS][UKERNEL_OUTPUTS / UKERNEL_VECTOR] = {              \
			{sum_1_1, sum_1_2, sum_1_3}, {sum_2_1, sum_2_2, sum_2_3}, {sum_3_1, sum_3_2, sum_3_3},    \
			{sum_4_1, sum_4_2, sum_4_3}, {sum_5_1, sum_5_2, sum_5_3}, {sum_6_1, sum_6_2, sum_6_3},    \
			{sum_7_1, sum_7_2, sum_7_3}, {sum_8_1, sum_8_2, sum_8_3}, {sum_9_1, sum_9_2, sum_9_3},    \
		};                                                                                                \
		all[block->rows - 1][block->n_columns / UKERNEL_VECTOR - 1](block, sums);                         \
	}

/* Four pixels by 16 columns at a time: unpacking leaves, in quarter q of register i, column 4 * q + i. */
UKERNEL_INLINE void ukernel_avx512_turn_four(const int32_t *from, int32_t *to)
{
	enum { QUARTER = 4 * UKERNEL_COLUMNS };
	__m512i x[4];
	UKERNEL_UNROLL
	for (unsigned i = 0; i < 4; i++)
		x[i] = _mm512_load_si512(from + i * UKERNEL_OUTPUTS);
	__m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]);
	__m512i c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);
	const __m512i columns[4] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c),
				    _mm512_unpacklo_epi64(b, d), _mm512_unpackhi_epi64(b, d)};
	UKERNEL_UNROLL
	for (unsigned i = 0; i < 4; i++, to += UKERNEL_COLUMNS) {
		_mm_store_si128((__m128i *)to, _mm512_castsi512_si128(columns[i]));
		_mm_store_si128((__m128i *)(to + QUARTER), _mm512_extracti32x4_epi32(columns[i], 1));
		_mm_store_si128((__m128i *)(to + 2 * QUARTER), _mm512_extracti32x4_epi32(columns[i], 2));
		_mm_store_si128((__m128i *)(to + 3 * QUARTER), _mm512_extracti32x4_epi32(columns[i], 3));
	}
}

UKERNEL_INLINE void ukernel_avx512_turn(const int32_t *sums, unsigned n, unsigned n_columns, int32_t *to)
{
	for (unsigned column = 0; column < n_columns; column += UKERNEL_VECTOR)
		for (unsigned i = 0; i < n; i += 4)
			ukernel_avx512_turn_four(sums + i * UKERNEL_OUTPUTS + column,
						 to + column * UKERNEL_COLUMNS + i);
}

#endif
