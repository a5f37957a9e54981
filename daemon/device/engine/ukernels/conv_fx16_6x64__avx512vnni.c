/* 16-bit data with weights of 16 or 8 bits by vpdpwssd. */
#include "daemon/device/engine/ukernel_avx512_fx16.h"

extern const struct ukernel conv_fx16_6x64__avx512vnni;

/* 2 x 64 elements to 64 steps, as for 8 bits. */
static void pack(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to)
{
	(void)high_off;
	const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
	const int16_t *first = lines[0], *second = lines[1];
	int64_t end = (n + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS * UKERNEL_COLUMNS;
	(void)bytes;
	for (int64_t i = 0; i < end; i += 32, to += 32 * UKERNEL_STEP_BYTES) {
		__mmask32 mask = i < n ? (__mmask32)ukernel_low_bits(n - i) : 0;
		__m512i a = _mm512_permutexvar_epi64(order, _mm512_maskz_loadu_epi16(mask, first + i));
		__m512i b = _mm512_permutexvar_epi64(order, _mm512_maskz_loadu_epi16(mask, second + i));
		_mm512_storeu_si512(to, _mm512_unpacklo_epi16(a, b));
		_mm512_storeu_si512(to + 64, _mm512_unpackhi_epi16(a, b));
	}
}

UKERNEL_AVX512_BLOCK(_mm512_dpwssd_epi32)

static void widen(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift, bool first,
		  int64_t *wide)
{
	const __m512i count = _mm512_set1_epi64(shift);
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS, wide += UKERNEL_COLUMNS)
		for (unsigned i = 0; i < n_columns; i += 8) {
			__m512i x = _mm512_cvtepi32_epi64(_mm256_load_si256((const __m256i *)(sums + i)));
			x = _mm512_sllv_epi64(x, count);
			if (!first)
				x = _mm512_add_epi64(x, _mm512_load_si512(wide + i));
			_mm512_store_si512(wide + i, x);
		}
}

static int64_t store32(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
		       const int32_t *sums)
{
	const struct ukernel_round32 round = ukernel_round32_of(&result->requantize);
	int64_t saturated = 0;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i total = _mm512_set1_epi32((int32_t)result->totals[row]), y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++)
			y[v] = ukernel_round32(_mm512_add_epi32(total, _mm512_load_si512(sums + 16 * v)), &round);
		saturated += ukernel_finish16(&result->requantize, strip, y, result->to[row]);
	}
	return saturated;
}

/* 16 sums with their total in units of 2^UKERNEL_DROP. What is below one is a mark in the lowest bit, which no
 * rounding shift by 2 or more can tell from the sum itself. */
UKERNEL_INLINE __m512i join(const int32_t *sums, int64_t n_high, int64_t n_low, int64_t total)
{
	const __m512i below = _mm512_set1_epi32(0xff), one = _mm512_set1_epi32(1);
	__m512i high = _mm512_set1_epi32((int32_t)(total >> 8)), low = _mm512_set1_epi32((int32_t)(total & 0xff));
	for (int64_t i = 0; i < n_high; i++, sums += UKERNEL_PART)
		high = _mm512_add_epi32(high, _mm512_load_si512(sums));
	for (int64_t i = 0; i < n_low; i++, sums += UKERNEL_PART) {
		__m512i x = _mm512_load_si512(sums);
		high = _mm512_add_epi32(high, _mm512_srai_epi32(x, 8));
		low = _mm512_add_epi32(low, _mm512_and_si512(x, below));
	}
	high = _mm512_slli_epi32(_mm512_add_epi32(high, _mm512_srli_epi32(low, 8)), 8 - UKERNEL_DROP);
	return _mm512_mask_or_epi32(high, _mm512_test_epi32_mask(low, below), high, one);
}

UKERNEL_INLINE int64_t store_some(const struct ukernel_result *result, const struct ukernel_strip *strip,
				  unsigned rows, const int32_t *sums, const int64_t n_high, const int64_t n_low)
{
	const struct ukernel_round32 round = ukernel_round32_of(&result->requantize);
	int64_t saturated = 0;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++)
			y[v] = ukernel_round32(join(sums + 16 * v, n_high, n_low, result->totals[row]), &round);
		saturated += ukernel_finish16(&result->requantize, strip, y, result->to[row]);
	}
	return saturated;
}

static int64_t store_parts(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
			   const int32_t *sums, int64_t n_high, int64_t n_low)
{
	if (n_high == 1 && n_low == 1)
		return store_some(result, strip, rows, sums, 1, 1);
	if (n_high == 0 && n_low == 2)
		return store_some(result, strip, rows, sums, 0, 2);
	return store_some(result, strip, rows, sums, n_high, n_low);
}

const struct ukernel conv_fx16_6x64__avx512vnni = {
	.name = "conv_fx16_6x64__avx512vnni",
	.n_terms = 2,
	.weight_bytes = 2,
	.rows = UKERNEL_ROWS,
	.speed = 48,
	.depth = 1,
	UKERNEL_AVX512_MOVES,
	.pack = pack,
	.block = block,
	.widen = widen,
	.store32 = store32,
	.store_parts = store_parts,
	.store64 = ukernel_avx512_store64,
};
