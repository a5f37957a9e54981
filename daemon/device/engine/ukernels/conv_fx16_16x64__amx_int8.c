/* 16-bit data, with weights of 16 or 8 bits, as bytes: low and high ones of the weights are two tiles of A, those
 * of 16 pixels two of B, and their four products have sums of their own. 16384 terms, which is what
 * UKERNEL_STEPS_MAX steps have, of 255 * 255 stay below 2^31. */
#include "daemon/device/engine/amx.h"
#include "daemon/device/engine/ukernel_avx512_fx16.h"

extern const struct ukernel conv_fx16_16x64__amx_int8;

enum {
	DEPTH = 2 * AMX_ROW_BYTES / UKERNEL_STEP_BYTES,
	HIGH = DEPTH / 2,	   /* steps */
	PITCH = 2 * AMX_ROW_BYTES, /* of a row's weights of a group */
	TILE = AMX_ROWS * AMX_ROWS,
};

/* Elements of two lines side by side, 16 of each. */
UKERNEL_INLINE __m512i load_pairs(const void *const *lines, int64_t i, __mmask16 mask)
{
	__m256i a = _mm256_maskz_loadu_epi16(mask, (const int16_t *)lines[0] + i);
	__m256i b = _mm256_maskz_loadu_epi16(mask, (const int16_t *)lines[1] + i);
	return _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
}

/* 4 x 16 elements to 16 steps of their low bytes, and as many of the others. */
static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	/* Bytes 0 and 2 of each pair and, as 64 and 66, of the one in the other register. */
	const __m512i first = _mm512_set1_epi32(0x42400200);
	const __m512i pair = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const __m512i low = _mm512_add_epi8(first, _mm512_mullo_epi32(pair, _mm512_set1_epi32(0x04040404)));
	const __m512i high = _mm512_add_epi8(low, _mm512_set1_epi8(1));
	(void)bytes;
	for (int64_t i = 0; i < n; i += UKERNEL_VECTOR, to += UKERNEL_VECTOR * UKERNEL_STEP_BYTES) {
		__mmask16 mask = (__mmask16)ukernel_low_bits(n - i);
		__m512i a = load_pairs(lines, i, mask), b = load_pairs(lines + 2, i, mask);
		_mm512_storeu_si512(to, _mm512_permutex2var_epi8(a, low, b));
		_mm512_storeu_si512(to + high_off, _mm512_permutex2var_epi8(a, high, b));
	}
}

/* Tiles 0 to 3 are sums, 4 and 5 low and high bytes of weights, 6 and 7 those of pixels. */
static struct amx_config config_of(unsigned rows)
{
	struct amx_config config = {.palette = 1};
	for (unsigned i = 0; i < AMX_TILES; i++) {
		config.rows[i] = (uint8_t)(i < 6 ? rows : AMX_ROWS);
		config.row_bytes[i] = AMX_ROW_BYTES;
	}
	return config;
}

/* Of 16 pixels: low by low, low weights by high pixels, high by low, high by high. */
static void sum(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		unsigned rows, int32_t *sums)
{
	AMX_TILEZERO(0);
	AMX_TILEZERO(1);
	AMX_TILEZERO(2);
	AMX_TILEZERO(3);
	for (int64_t k = 0; k < n_steps; k += DEPTH, weights += rows * PITCH) {
		int64_t stride = (int64_t)offsets[k + 1] - offsets[k];
		AMX_TILELOADD(4, weights, PITCH);
		AMX_TILELOADD(6, data + offsets[k], stride);
		AMX_TDPBUUD(0, 4, 6);
		AMX_TILELOADD(7, data + offsets[k + HIGH], stride);
		AMX_TDPBUSD(1, 4, 7);
		AMX_TILELOADD(5, weights + AMX_ROW_BYTES, PITCH);
		AMX_TDPBSUD(2, 5, 6);
		AMX_TDPBSSD(3, 5, 7);
	}
	AMX_TILESTORED(0, sums, AMX_ROW_BYTES);
	AMX_TILESTORED(1, sums + TILE, AMX_ROW_BYTES);
	AMX_TILESTORED(2, sums + 2 * TILE, AMX_ROW_BYTES);
	AMX_TILESTORED(3, sums + 3 * TILE, AMX_ROW_BYTES);
}

UKERNEL_INLINE __m512i widened(const int32_t *sums)
{
	return _mm512_cvtepi32_epi64(_mm256_load_si256((const __m256i *)sums));
}

/* The four tiles of sums into one. */
static void combine(const int32_t *sums, unsigned rows, bool first, int64_t *wide)
{
	for (unsigned row = 0; row < rows; row++, sums += AMX_ROWS, wide += UKERNEL_COLUMNS)
		for (unsigned i = 0; i < AMX_ROWS; i += 8) {
			__m512i middle = _mm512_add_epi64(widened(sums + TILE + i), widened(sums + 2 * TILE + i));
			__m512i x = _mm512_add_epi64(widened(sums + i), _mm512_slli_epi64(middle, 8));
			x = _mm512_add_epi64(x, _mm512_slli_epi64(widened(sums + 3 * TILE + i), 16));
			if (!first)
				x = _mm512_add_epi64(x, _mm512_load_si512(wide + i));
			_mm512_store_si512(wide + i, x);
		}
}

static void block64(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		    unsigned rows, unsigned n_columns, bool first, int64_t *wide)
{
	const struct amx_config config = config_of(rows);
	_Alignas(64) int32_t sums[4 * TILE];
	amx_ldtilecfg(&config);
	for (unsigned i = 0; i < n_columns; i += UKERNEL_VECTOR) {
		sum(offsets, n_steps, data + i * UKERNEL_STEP_BYTES, weights, rows, sums);
		combine(sums, rows, first, wide + i);
	}
	amx_tilerelease();
}

const struct ukernel conv_fx16_16x64__amx_int8 = {
	.name = "conv_fx16_16x64__amx_int8",
	.n_terms = 4,
	.weight_bytes = 1,
	.rows = AMX_ROWS,
	.depth = DEPTH,
	.by_bytes = true,
	UKERNEL_AVX512_MOVES,
	.pack = pack,
	.block64 = block64,
	.store64 = ukernel_avx512_store64,
};
