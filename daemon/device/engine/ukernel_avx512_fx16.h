/* 16-bit results with AVX-512: sums of 64 bits to elements. */
#ifndef DEVICE_UKERNEL_AVX512_FX16_H
#define DEVICE_UKERNEL_AVX512_FX16_H

#include "daemon/device/engine/ukernel_avx512.h"

/* Limits, the count and the store of 64 values. */
UKERNEL_INLINE int64_t ukernel_finish16(const struct requantize *r, const struct ukernel_strip *strip,
					const __m512i y[4], uint8_t *to)
{
	const __m512i low = _mm512_set1_epi16((short)r->limit_low), high = _mm512_set1_epi16((short)r->limit_high);
	UKERNEL_UNROLL
	for (unsigned v = 0; v < 4; v += 2) {
		__m512i words = ukernel_narrow16(y[v], y[v + 1]);
		words = _mm512_min_epi16(_mm512_max_epi16(words, low), high);
		to = ukernel_put16(words, strip, 16 * v, to);
	}
	return __builtin_popcountll(ukernel_beyond(y, 32768) & strip->real);
}

/* As ukernel_round32. */
struct ukernel_round64 {
	__m512i half, away, below, even, shift;
};

UKERNEL_INLINE struct ukernel_round64 ukernel_round64_of(const struct requantize *r)
{
	return (struct ukernel_round64){
		.half = _mm512_set1_epi64(r->shift > 0 ? INT64_C(1) << (r->shift - 1) : 0),
		.away = _mm512_set1_epi64(r->rounding == NPUMEM_NEAREST && r->shift > 0 ? -1 : 0),
		.below = _mm512_set1_epi64((INT64_C(1) << r->shift) - 1),
		.even = _mm512_set1_epi64(r->rounding == NPUMEM_CONVERGENT && r->shift > 0 ? -2 : -1),
		.shift = _mm512_set1_epi64(r->shift),
	};
}

/* 8 sums to results of 32 bits, saturated to those. */
UKERNEL_INLINE __m256i ukernel_round64(__m512i x, const struct ukernel_round64 *r)
{
	__m512i away = _mm512_and_si512(_mm512_srai_epi64(x, 63), r->away);
	__m512i t = _mm512_add_epi64(_mm512_add_epi64(x, r->half), away);
	__m512i y = _mm512_srav_epi64(t, r->shift);
	return _mm512_cvtsepi64_epi32(_mm512_mask_and_epi64(y, _mm512_testn_epi64_mask(t, r->below), y, r->even));
}

UKERNEL_INLINE int64_t ukernel_avx512_store64(const struct ukernel_result *result,
					      const struct ukernel_strip *strip, unsigned rows,
					      const int64_t *sums)
{
	const struct ukernel_round64 round = ukernel_round64_of(result->requantize);
	int64_t saturated = 0;
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i total = _mm512_set1_epi64(result->totals[row]), y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++) {
			__m512i a = _mm512_add_epi64(total, _mm512_load_si512(sums + 16 * v));
			__m512i b = _mm512_add_epi64(total, _mm512_load_si512(sums + 16 * v + 8));
			y[v] = _mm512_inserti64x4(_mm512_castsi256_si512(ukernel_round64(a, &round)),
						  ukernel_round64(b, &round), 1);
		}
		saturated += ukernel_finish16(result->requantize, strip, y, result->to[row] + result->at);
	}
	return saturated;
}

#endif
