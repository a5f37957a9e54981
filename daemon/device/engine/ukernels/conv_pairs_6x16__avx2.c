/* Pairs of 16-bit terms by vpmaddwd, for 8-bit data too: vpmaddubsw would saturate. 12 sums, 2 vectors of pixels,
 * one weight and one product are the 16 registers. */
#include "daemon/device/engine/ukernel_avx2.h"

enum { COLUMNS = 16, VECTORS = 2 };

UKERNEL_INLINE __m256i load(unsigned bytes, const void *line, int64_t i)
{
	if (bytes == 1)
		return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)((const int8_t *)line + i)));
	return _mm256_loadu_si256((const __m256i *)((const int16_t *)line + i));
}

/* 16 pixels of both lines: unpacking works in halves, so the middle quarters change places first. */
UKERNEL_INLINE int64_t pack_pairs(unsigned bytes, const void *const *lines, int64_t n, uint8_t *to)
{
	int64_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__m256i a = _mm256_permute4x64_epi64(load(bytes, lines[0], i), 0xd8);
		__m256i b = _mm256_permute4x64_epi64(load(bytes, lines[1], i), 0xd8);
		_mm256_storeu_si256((__m256i *)(to + 4 * i), _mm256_unpacklo_epi16(a, b));
		_mm256_storeu_si256((__m256i *)(to + 4 * i + 32), _mm256_unpackhi_epi16(a, b));
	}
	return i;
}

static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	int64_t i = bytes == 1 ? pack_pairs(1, lines, n, to) : pack_pairs(2, lines, n, to);
	ukernel_plain_pairs(bytes, lines, i, n, to);
}

UKERNEL_INLINE void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			int32_t *sums, const unsigned rows)
{
	__m256i acc[UKERNEL_ROWS][VECTORS];
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++)
		acc[r][0] = acc[r][1] = _mm256_setzero_si256();
	for (int64_t k = 0; k < n_steps; k++, weights += UKERNEL_STEP_BYTES * rows) {
		const __m256i *at = (const __m256i *)(data + offsets[k]);
		__m256i x = _mm256_loadu_si256(at), y = _mm256_loadu_si256(at + 1);
		UKERNEL_UNROLL
		for (unsigned r = 0; r < rows; r++) {
			int32_t pair;
			memcpy(&pair, weights + 4 * r, sizeof(pair));
			__m256i w = _mm256_set1_epi32(pair);
			acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(x, w));
			acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(y, w));
		}
	}
	UKERNEL_UNROLL
	for (unsigned r = 0; r < rows; r++) {
		_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS), acc[r][0]);
		_mm256_store_si256((__m256i *)(sums + r * UKERNEL_COLUMNS + 8), acc[r][1]);
	}
}

UKERNEL_BLOCK_OF_ROWS(COLUMNS)

const struct ukernel conv_pairs_6x16__avx2 = {
	.name = "conv_pairs_6x16__avx2",
	.n_terms = 2,
	.weight_bytes = 2,
	.rows = UKERNEL_ROWS,
	.speed = 24,
	.depth = 1,
	UKERNEL_PLAIN_MOVES,
	.pack = pack,
	.block = block,
	.widen = ukernel_plain_widen,
	.store32 = ukernel_avx2_store32,
};
