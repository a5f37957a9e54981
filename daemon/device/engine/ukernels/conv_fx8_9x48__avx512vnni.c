/* Pixels as rows: weights are vectors of 16 output channels, signed, and a pixel's four terms, 0 to 255, are
 * broadcast. 27 sums, 3 vectors and a pixel are 31 registers, and 12 loads feed 27 products. */
#include "daemon/device/engine/ukernel_avx512.h"

extern const struct ukernel conv_fx8_9x48__avx512vnni;

enum { VECTORS = UKERNEL_OUTPUTS / UKERNEL_VECTOR };

/* Sums are left as they lie in registers: with more in this function GCC 12 keeps them in memory. */
#define SUM(rows, vectors)                                                                                        \
	static void sum_##rows##_##vectors(const struct ukernel_pixels *block, __m512i(*to)[VECTORS])             \
	{                                                                                                         \
		const uint32_t *offsets = block->offsets;                                                         \
		const uint8_t *weights = block->weights;                                                          \
		int64_t pixel_bytes = block->pixel_bytes, skipped = block->way - block->n_steps;                  \
		__m512i acc[rows][vectors], w[vectors];                                                           \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				acc[r][v] = _mm512_setzero_si512();                                               \
		}                                                                                                 \
		for (int64_t run = 0; run < block->n_runs; run++) {                                               \
			for (const uint32_t *end = offsets + block->n_steps; offsets < end;                       \
			     offsets++, weights += 64 * vectors) {                                                \
				const uint8_t *at = block->data + *offsets;                                       \
				UKERNEL_UNROLL                                                                    \
				for (unsigned v = 0; v < vectors; v++)                                            \
					w[v] = _mm512_loadu_si512(weights + 64 * v);                              \
				UKERNEL_UNROLL                                                                    \
				for (unsigned r = 0; r < rows; r++, at += pixel_bytes) {                          \
					int32_t terms;                                                            \
					memcpy(&terms, at, sizeof(terms));                                        \
					__m512i x = _mm512_set1_epi32(terms);                                     \
					UKERNEL_UNROLL                                                            \
					for (unsigned v = 0; v < vectors; v++)                                    \
						acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], x, w[v]);              \
				}                                                                                 \
			}                                                                                         \
			offsets += skipped;                                                                       \
			weights += skipped * 64 * vectors;                                                        \
		}                                                                                                 \
		UKERNEL_UNROLL                                                                                    \
		for (unsigned r = 0; r < rows; r++) {                                                             \
			UKERNEL_UNROLL                                                                            \
			for (unsigned v = 0; v < vectors; v++)                                                    \
				to[r][v] = acc[r][v];                                                             \
		}                                                                                                 \
	}
#define SUMS(rows)                                                                                                \
	SUM(rows, 1)                                                                                              \
	SUM(rows, 2)                                                                                              \
	SUM(rows, 3)
SUMS(1)
SUMS(2)
SUMS(3)
SUMS(4)
SUMS(5)
SUMS(6)
SUMS(7)
SUMS(8)
SUMS(9)

enum { GROUP = 4 }; /* rows that are turned at a time */

/* 4 rows of 16 columns, of which `mask` are stored, to columns of rows: unpacking leaves, in quarter q of register
 * c, column 4 * q + c. */
UKERNEL_INLINE void turn(const __m512i rows[GROUP], __mmask8 mask, int32_t *to)
{
	__m512i a = _mm512_unpacklo_epi32(rows[0], rows[1]), b = _mm512_unpackhi_epi32(rows[0], rows[1]);
	__m512i c = _mm512_unpacklo_epi32(rows[2], rows[3]), d = _mm512_unpackhi_epi32(rows[2], rows[3]);
	const __m512i columns[4] = {_mm512_unpacklo_epi64(a, c), _mm512_unpackhi_epi64(a, c),
				    _mm512_unpacklo_epi64(b, d), _mm512_unpackhi_epi64(b, d)};
	UKERNEL_UNROLL
	for (unsigned i = 0; i < 4; i++, to += UKERNEL_COLUMNS) {
		enum { QUARTER = 4 * UKERNEL_COLUMNS };
		_mm_mask_storeu_epi32(to, mask, _mm512_castsi512_si128(columns[i]));
		_mm_mask_storeu_epi32(to + QUARTER, mask, _mm512_extracti32x4_epi32(columns[i], 1));
		_mm_mask_storeu_epi32(to + 2 * QUARTER, mask, _mm512_extracti32x4_epi32(columns[i], 2));
		_mm_mask_storeu_epi32(to + 3 * QUARTER, mask, _mm512_extracti32x4_epi32(columns[i], 3));
	}
}

static void put(const __m512i (*from)[VECTORS], const struct ukernel_pixels *block, int32_t *sums)
{
	for (unsigned v = 0; v < block->n_columns / UKERNEL_VECTOR; v++) {
		__m512i first = _mm512_load_si512(block->start + UKERNEL_VECTOR * v);
		for (unsigned r = 0; r < block->rows; r += GROUP) {
			__m512i group[GROUP];
			unsigned n = block->rows - r < GROUP ? block->rows - r : GROUP;
			UKERNEL_UNROLL
			for (unsigned i = 0; i < GROUP; i++)
				group[i] = _mm512_add_epi32(from[r + i][v], first);
			turn(group, (__mmask8)ukernel_low_bits(n),
			     sums + UKERNEL_VECTOR * v * UKERNEL_COLUMNS + r);
		}
	}
}

/* The same for rows whose sums do not lie side by side. */
static void put_apart(const __m512i (*from)[VECTORS], const struct ukernel_pixels *block, int32_t *sums)
{
	for (unsigned r = 0; r < block->rows; r++) {
		const uint32_t *row = (const uint32_t *)from[r];
		for (unsigned i = 0; i < block->n_columns; i++)
			sums[i * UKERNEL_COLUMNS + r * block->pixel_sums] =
				(int32_t)(row[i] + (uint32_t)block->start[i]);
	}
}

static void pixels(const struct ukernel_pixels *block, int32_t *sums)
{
	typedef void sum_function(const struct ukernel_pixels *, __m512i(*)[VECTORS]);
	static sum_function *const all[UKERNEL_PIXELS][VECTORS] = {
		{sum_1_1, sum_1_2, sum_1_3}, {sum_2_1, sum_2_2, sum_2_3}, {sum_3_1, sum_3_2, sum_3_3},
		{sum_4_1, sum_4_2, sum_4_3}, {sum_5_1, sum_5_2, sum_5_3}, {sum_6_1, sum_6_2, sum_6_3},
		{sum_7_1, sum_7_2, sum_7_3}, {sum_8_1, sum_8_2, sum_8_3}, {sum_9_1, sum_9_2, sum_9_3},
	};
	/* Rows behind the last are turned with it and never stored. */
	__m512i acc[(UKERNEL_PIXELS + GROUP - 1) / GROUP * GROUP][VECTORS];
	all[block->rows - 1][block->n_columns / UKERNEL_VECTOR - 1](block, acc);
	(block->pixel_sums == 1 ? put : put_apart)((const __m512i(*)[VECTORS])acc, block, sums);
}

const struct ukernel conv_fx8_9x48__avx512vnni = {
	.name = "conv_fx8_9x48__avx512vnni",
	.n_terms = 4,
	.weight_bytes = 1,
	.unsigned_data = true,
	.pixels = pixels,
};
