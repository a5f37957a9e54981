/* 16-bit data with weights of 16 or 8 bits by vpdpwssd. */
#include "daemon/device/engine/ukernel_avx512_fx16.h"

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
	const struct ukernel_round32 round = ukernel_round32_of(result->requantize);
	int64_t saturated = 0;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i total = _mm512_set1_epi32((int32_t)result->totals[row]), y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++)
			y[v] = ukernel_round32(_mm512_add_epi32(total, _mm512_load_si512(sums + 16 * v)), &round);
		saturated += ukernel_finish16(result->requantize, strip, y, result->to[row] + result->at);
	}
	return saturated;
}

/* How sums in units of 2^UKERNEL_DROP become results; what is below a unit decides a tie alone. */
struct parts_round {
	int64_t half;
	__m512i even, shift, below, halves;
};

/* 16 results. The half of their unit is whole units of the sums, and is added with the total. */
UKERNEL_INLINE __m512i join(const struct parts_round *r, const int32_t *sums, int64_t n_high, int64_t n_low,
			    int64_t total, const bool away)
{
	const __m512i fraction = _mm512_set1_epi32((1 << UKERNEL_DROP) - 1);
	__m512i high = _mm512_set1_epi32((int32_t)((total >> UKERNEL_DROP) + r->half)),
		low = _mm512_set1_epi32((int32_t)(total & ((1 << UKERNEL_DROP) - 1)));
	for (int64_t i = 0; i < n_high; i++, sums += UKERNEL_PART)
		high = _mm512_add_epi32(high, _mm512_load_si512(sums));
	for (int64_t i = 0; i < n_low; i++, sums += UKERNEL_PART) {
		__m512i x = _mm512_load_si512(sums);
		high = _mm512_add_epi32(high, _mm512_srai_epi32(x, UKERNEL_DROP));
		low = _mm512_add_epi32(low, _mm512_and_si512(x, fraction));
	}
	high = _mm512_add_epi32(high, _mm512_srli_epi32(low, UKERNEL_DROP));
	__mmask16 whole = _mm512_testn_epi32_mask(low, fraction);
	if (away) { /* what is negative is a little less: the next unit where it is whole */
		whole = _mm512_mask_cmplt_epi32_mask(whole, high, r->halves);
		return _mm512_srav_epi32(_mm512_mask_sub_epi32(high, whole, high, _mm512_set1_epi32(1)), r->shift);
	}
	__m512i y = _mm512_srav_epi32(high, r->shift);
	return _mm512_mask_and_epi32(y, _mm512_mask_testn_epi32_mask(whole, high, r->below), y, r->even);
}

UKERNEL_INLINE int64_t store_some(const struct ukernel_result *result, const struct ukernel_strip *strip,
				  unsigned rows, const int32_t *sums, const int64_t n_high, const int64_t n_low,
				  const bool away)
{
	const struct requantize *to = result->requantize;
	const int64_t half = INT64_C(1) << (to->shift - 1);
	const struct parts_round round = {
		.half = half,
		.even = _mm512_set1_epi32(to->rounding == NPUMEM_CONVERGENT ? -2 : -1),
		.shift = _mm512_set1_epi32((int32_t)to->shift),
		.below = _mm512_set1_epi32((int32_t)(2 * half - 1)),
		.halves = _mm512_set1_epi32((int32_t)half),
	};
	int64_t saturated = 0;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++)
			y[v] = join(&round, sums + 16 * v, n_high, n_low, result->totals[row], away);
		saturated += ukernel_finish16(to, strip, y, result->to[row] + result->at);
	}
	return saturated;
}

static int64_t store_parts(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
			   const int32_t *sums, int64_t n_high, int64_t n_low)
{
	if (result->requantize->rounding == NPUMEM_NEAREST)
		return store_some(result, strip, rows, sums, n_high, n_low, true);
	if (n_high == 1 && n_low == 1)
		return store_some(result, strip, rows, sums, 1, 1, false);
	if (n_high == 0 && n_low == 2)
		return store_some(result, strip, rows, sums, 0, 2, false);
	return store_some(result, strip, rows, sums, n_high, n_low, false);
}

const struct ukernel conv_fx16_6x64__avx512vnni = {
	.name = "conv_fx16_6x64__avx512vnni",
	.n_terms = 2,
	.weight_bytes = 2,
	.segment_min = 6,
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
