/* 8-bit data and results with AVX-512: 4 planar lines to steps, sums of 32 bits to bytes. */
#ifndef DEVICE_UKERNEL_AVX512_FX8_H
#define DEVICE_UKERNEL_AVX512_FX8_H

#include "daemon/device/engine/ukernel_avx512.h"

/* 4 x 64 bytes to 64 steps. Unpacking works in quarters of a register: words change places first, so that each
 * result is 16 steps in their order. Of each byte the bits of `turned` are turned. */
UKERNEL_INLINE void ukernel_avx512_pack8(const void *const *lines, int64_t n, uint8_t turned, uint8_t *to)
{
	const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	const __m512i sign = _mm512_set1_epi8((char)turned);
	for (int64_t i = 0; i < n; i += UKERNEL_COLUMNS, to += UKERNEL_COLUMNS * UKERNEL_STEP_BYTES) {
		__mmask64 mask = ukernel_low_bits(n - i);
		__m512i x[4];
		UKERNEL_UNROLL
		for (unsigned j = 0; j < 4; j++) {
			x[j] = _mm512_maskz_loadu_epi8(mask, (const uint8_t *)lines[j] + i);
			x[j] = _mm512_permutexvar_epi32(order, _mm512_xor_si512(x[j], sign));
		}
		__m512i a = _mm512_unpacklo_epi8(x[0], x[1]), b = _mm512_unpackhi_epi8(x[0], x[1]);
		__m512i c = _mm512_unpacklo_epi8(x[2], x[3]), d = _mm512_unpackhi_epi8(x[2], x[3]);
		_mm512_storeu_si512(to, _mm512_unpacklo_epi16(a, c));
		_mm512_storeu_si512(to + 64, _mm512_unpackhi_epi16(a, c));
		_mm512_storeu_si512(to + 128, _mm512_unpacklo_epi16(b, d));
		_mm512_storeu_si512(to + 192, _mm512_unpackhi_epi16(b, d));
	}
}

/* Packing 32 values to 16 bits takes 4 of each vector in turn: this is the order that real columns are then in. */
UKERNEL_INLINE __mmask32 ukernel_packed_order(uint64_t real)
{
	const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
	return _mm512_movepi16_mask(_mm512_permutexvar_epi64(order, _mm512_movm_epi16((__mmask32)real)));
}

/* As ukernel_round32, where `x` has half a unit too much already. */
UKERNEL_INLINE __m512i ukernel_rounded(__m512i x, const struct ukernel_round32 *r, enum npumem_rounding rounding)
{
	if (rounding == NPUMEM_NEAREST)
		x = _mm512_add_epi32(
			x, _mm512_and_si512(_mm512_srai_epi32(_mm512_sub_epi32(x, r->half), 31), r->away));
	__m512i y = _mm512_srav_epi32(x, r->shift);
	if (rounding == NPUMEM_CONVERGENT)
		y = _mm512_mask_and_epi32(y, _mm512_testn_epi32_mask(x, r->below), y, r->even);
	return y;
}

/* A small sum x, added to the bits of the float 1.5 * 2^23, is the float 1.5 * 2^23 + x. One multiply-add, which
 * rounds its exact result to a whole number, makes 1.5 * 2^23 + x / 2^shift of it; the lower half of its bits is
 * the result. */
struct ukernel_small32 {
	__m512 scale, more;
	__m512i words; /* the lower halves of two vectors */
};

enum { UKERNEL_FLOAT_BITS = 0x4b400000, UKERNEL_FLOAT = 3 << 22 };

UKERNEL_INLINE struct ukernel_small32 ukernel_small32_of(const struct requantize *r)
{
	const __m512i pairs = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	return (struct ukernel_small32){
		.scale = _mm512_set1_ps(1.0f / (float)(1 << r->shift)),
		.more = _mm512_set1_ps((float)(UKERNEL_FLOAT - (UKERNEL_FLOAT >> r->shift))),
		.words = _mm512_add_epi16(_mm512_mullo_epi32(pairs, _mm512_set1_epi32(0x40004)),
					  _mm512_set1_epi32(0x20000)),
	};
}

UKERNEL_INLINE __m512i ukernel_rounded_small(__m512i x, const struct ukernel_small32 *s,
					     enum npumem_rounding rounding)
{
	__m512 y = _mm512_castsi512_ps(x);
	return _mm512_castps_si512(
		rounding == NPUMEM_UP
			? _mm512_fmadd_round_ps(y, s->scale, s->more, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
			: _mm512_fmadd_round_ps(y, s->scale, s->more,
						_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

UKERNEL_INLINE int64_t ukernel_store_rounded8(const struct ukernel_result *result,
					      const struct ukernel_strip *strip, unsigned rows,
					      const int32_t *sums, enum npumem_rounding rounding, const bool small)
{
	const struct requantize *requantize = result->requantize;
	const struct ukernel_round32 round = ukernel_round32_of(requantize);
	const struct ukernel_small32 floats = ukernel_small32_of(requantize);
	const __m512i bits = small ? _mm512_set1_epi32(UKERNEL_FLOAT_BITS) : _mm512_setzero_si512();
	const __m512i more = small && rounding != NPUMEM_UP ? bits : _mm512_add_epi32(bits, round.half);
	/* Of packed words, which come from each vector in turn, 8 or 4 at a time. */
	const __m512i order = small ? _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
				    : _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	const __m512i low = _mm512_set1_epi8((char)requantize->limit_low);
	const __m512i high = _mm512_set1_epi8((char)requantize->limit_high);
	const __m512i bottom = _mm512_set1_epi16(128), most = _mm512_set1_epi16(255), one = _mm512_set1_epi16(1);
	const uint64_t real = strip->real;
	const __mmask32 first = small ? (__mmask32)real : ukernel_packed_order(real);
	const __mmask32 second = small ? (__mmask32)(real >> 32) : ukernel_packed_order(real >> 32);
	const int64_t *totals = result->totals, at = result->at;
	uint8_t *const *to = result->to;
	__m512i saturated = _mm512_setzero_si512();
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m512i total = _mm512_add_epi32(_mm512_set1_epi32((int32_t)totals[row]), more), y[4];
		UKERNEL_UNROLL
		for (unsigned v = 0; v < 4; v++) {
			y[v] = _mm512_add_epi32(total, _mm512_load_si512(sums + 16 * v));
			y[v] = small ? ukernel_rounded_small(y[v], &floats, rounding)
				     : ukernel_rounded(y[v], &round, rounding);
		}
		__m512i a = small ? _mm512_permutex2var_epi16(y[0], floats.words, y[1])
				  : _mm512_packs_epi32(y[0], y[1]);
		__m512i b = small ? _mm512_permutex2var_epi16(y[2], floats.words, y[3])
				  : _mm512_packs_epi32(y[2], y[3]);
		__mmask32 beyond = _mm512_mask_cmpgt_epu16_mask(first, _mm512_add_epi16(a, bottom), most);
		saturated = _mm512_mask_add_epi16(saturated, beyond, saturated, one);
		beyond = _mm512_mask_cmpgt_epu16_mask(second, _mm512_add_epi16(b, bottom), most);
		saturated = _mm512_mask_add_epi16(saturated, beyond, saturated, one);
		__m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packs_epi16(a, b));
		ukernel_put8(_mm512_min_epi8(_mm512_max_epi8(bytes, low), high), strip, to[row] + at);
	}
	return _mm512_reduce_add_epi32(_mm512_madd_epi16(saturated, one));
}

UKERNEL_INLINE int64_t ukernel_avx512_store8(const struct ukernel_result *result,
					     const struct ukernel_strip *strip, unsigned rows, const int32_t *sums)
{
	enum npumem_rounding rounding = result->requantize->rounding;
	if (rounding == NPUMEM_NEAREST)
		return ukernel_store_rounded8(result, strip, rows, sums, NPUMEM_NEAREST, false);
	if (rounding == NPUMEM_UP)
		return result->is_small ? ukernel_store_rounded8(result, strip, rows, sums, NPUMEM_UP, true)
					: ukernel_store_rounded8(result, strip, rows, sums, NPUMEM_UP, false);
	return result->is_small ? ukernel_store_rounded8(result, strip, rows, sums, NPUMEM_CONVERGENT, true)
				: ukernel_store_rounded8(result, strip, rows, sums, NPUMEM_CONVERGENT, false);
}

#endif
