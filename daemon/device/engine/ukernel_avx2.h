/* Sums to elements of 8 or 16 bits with AVX2. Without stores under a mask, what lies between real columns is
 * squeezed out of 8 bytes at a time. */
#ifndef DEVICE_UKERNEL_AVX2_H
#define DEVICE_UKERNEL_AVX2_H

#include <immintrin.h>

#include "daemon/device/engine/ukernel_plain.h"

enum { UKERNEL_AVX2_VECTORS = UKERNEL_COLUMNS / 8 };

/* Defines block() of a file whose sum() makes `vectors` vectors of sums of each row. */
#define UKERNEL_AVX2_SUM(rows, vectors)                                                                           \
	static void sum_##rows##_##vectors(const uint32_t *offsets, int64_t n_steps, const uint8_t *data,         \
					   const uint8_t *weights, int32_t *sums)                                 \
	{                                                                                                         \
		sum(offsets, n_steps, data, weights, sums, rows, vectors);                                        \
	}
#define UKERNEL_AVX2_BLOCK                                                                                        \
	UKERNEL_AVX2_SUM(1, 1)                                                                                    \
	UKERNEL_AVX2_SUM(2, 1)                                                                                    \
	UKERNEL_AVX2_SUM(3, 1)                                                                                    \
	UKERNEL_AVX2_SUM(4, 1)                                                                                    \
	UKERNEL_AVX2_SUM(5, 1)                                                                                    \
	UKERNEL_AVX2_SUM(6, 1)                                                                                    \
	UKERNEL_AVX2_SUM(1, 2)                                                                                    \
	UKERNEL_AVX2_SUM(2, 2)                                                                                    \
	UKERNEL_AVX2_SUM(3, 2)                                                                                    \
	UKERNEL_AVX2_SUM(4, 2)                                                                                    \
	UKERNEL_AVX2_SUM(5, 2)                                                                                    \
	UKERNEL_AVX2_SUM(6, 2)                                                                                    \
	static void block(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,  \
			  unsigned rows, unsigned n_columns, int32_t *sums)                                       \
	{                                                                                                         \
		typedef void sum_function(const uint32_t *, int64_t, const uint8_t *, const uint8_t *,            \
					  int32_t *);                                                             \
		static sum_function *const all[2][UKERNEL_ROWS] = {                                               \
			{sum_1_1, sum_2_1, sum_3_1, sum_4_1, sum_5_1, sum_6_1},                                   \
			{sum_1_2, sum_2_2, sum_3_2, sum_4_2, sum_5_2, sum_6_2},                                   \
		};                                                                                                \
		for (unsigned i = 0; i < n_columns; i += 16)                                                      \
			all[n_columns - i > 8][rows - 1](offsets, n_steps, data + UKERNEL_STEP_BYTES * i,         \
							 weights, sums + i);                                      \
	}

/* What all rows of a store have in common. */
struct ukernel_avx2_store {
	/* Of 16 elements of 16 bits, as packing two vectors leaves them: which are real, and, less than 0, how
	 * many of those were saturated. */
	__m256i real[UKERNEL_COLUMNS / 16], saturated;
	__m256i low, high, limit_low, limit_high;
	/* Of each 8 bytes of elements: the real ones, and how many bytes these are. */
	uint64_t masks[2 * UKERNEL_AVX2_VECTORS];
	uint8_t lengths[2 * UKERNEL_AVX2_VECTORS];
};

UKERNEL_INLINE void ukernel_avx2_begin(struct ukernel_avx2_store *s, const unsigned bytes,
				       const struct requantize *r, uint64_t real)
{
	const __m256i bits = _mm256_setr_epi16(0x1, 0x2, 0x4, 0x8, 0x100, 0x200, 0x400, 0x800, 0x10, 0x20, 0x40,
					       0x80, 0x1000, 0x2000, 0x4000, (short)0x8000);
	for (unsigned i = 0; i < UKERNEL_COLUMNS / 16; i++) {
		__m256i of = _mm256_set1_epi16((short)(real >> 16 * i));
		s->real[i] = _mm256_cmpeq_epi16(_mm256_and_si256(of, bits), bits);
	}
	s->saturated = _mm256_setzero_si256();
	s->low = bytes == 1 ? _mm256_set1_epi16(INT8_MIN) : _mm256_set1_epi32(INT16_MIN);
	s->high = bytes == 1 ? _mm256_set1_epi16(INT8_MAX) : _mm256_set1_epi32(INT16_MAX);
	s->limit_low = bytes == 1 ? _mm256_set1_epi8((char)r->limit_low) : _mm256_set1_epi16((short)r->limit_low);
	s->limit_high =
		bytes == 1 ? _mm256_set1_epi8((char)r->limit_high) : _mm256_set1_epi16((short)r->limit_high);
	const unsigned n = 8 / bytes;
	for (unsigned i = 0; i < UKERNEL_COLUMNS / n; i++, real >>= n) {
		s->masks[i] = bytes == 1 ? _pdep_u64(real, UINT64_C(0x0101010101010101)) * 0xff
					 : _pdep_u64(real, UINT64_C(0x0001000100010001)) * 0xffff;
		s->lengths[i] = (uint8_t)(__builtin_popcountll(s->masks[i]) / 8);
	}
}

UKERNEL_INLINE int64_t ukernel_avx2_end(const struct ukernel_avx2_store *s)
{
	int32_t sums[8];
	_mm256_storeu_si256((__m256i *)sums, _mm256_madd_epi16(s->saturated, _mm256_set1_epi16(-1)));
	return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

/* The lower n < 8 bytes of x. */
UKERNEL_INLINE uint8_t *ukernel_avx2_put_last(uint64_t x, unsigned n, uint8_t *to)
{
	for (unsigned some = 4; some; some /= 2)
		if (n & some) {
			memcpy(to, &x, some);
			x >>= 8 * some;
			to += some;
		}
	return to;
}

UKERNEL_INLINE void ukernel_avx2_put(const struct ukernel_avx2_store *s, const unsigned bytes,
				     const struct ukernel_strip *strip, const __m256i *elements, uint8_t *to)
{
	if (strip->n_real == UKERNEL_COLUMNS) {
		UKERNEL_UNROLL
		for (unsigned i = 0; i < 2 * bytes; i++)
			_mm256_storeu_si256((__m256i *)(to + 32 * i), elements[i]);
		return;
	}
	const uint8_t *end = to + strip->n_real * bytes;
	for (unsigned i = 0; to < end; i++) {
		uint64_t x = _pext_u64(((const uint64_t *)elements)[i], s->masks[i]);
		if (end - to >= 8) {
			memcpy(to, &x, 8);
			to += s->lengths[i];
		} else {
			to = ukernel_avx2_put_last(x, s->lengths[i], to);
		}
	}
}

/* Counts what a container of 8 bits does not hold of 16 bits, or one of 16 of 32. */
UKERNEL_INLINE void ukernel_avx2_count(struct ukernel_avx2_store *s, unsigned i, __m256i fits)
{
	s->saturated = _mm256_add_epi16(s->saturated, _mm256_andnot_si256(fits, s->real[i]));
}

/* Saturates, limits and stores the results of a row, which are in 32 bits. */
UKERNEL_INLINE void ukernel_avx2_finish(struct ukernel_avx2_store *s, const unsigned bytes,
					const struct ukernel_strip *strip, const __m256i y[UKERNEL_AVX2_VECTORS],
					uint8_t *to)
{
	__m256i words[UKERNEL_COLUMNS / 16];
	UKERNEL_UNROLL
	for (unsigned i = 0; i < UKERNEL_COLUMNS / 16; i++) {
		__m256i a = y[2 * i], b = y[2 * i + 1];
		words[i] = _mm256_packs_epi32(a, b);
		if (bytes == 1) {
			__m256i x = _mm256_max_epi16(_mm256_min_epi16(words[i], s->high), s->low);
			ukernel_avx2_count(s, i, _mm256_cmpeq_epi16(x, words[i]));
		} else {
			__m256i x = _mm256_max_epi32(_mm256_min_epi32(a, s->high), s->low);
			__m256i z = _mm256_max_epi32(_mm256_min_epi32(b, s->high), s->low);
			ukernel_avx2_count(s, i,
					   _mm256_packs_epi32(_mm256_cmpeq_epi32(x, a), _mm256_cmpeq_epi32(z, b)));
		}
		if (bytes == 2) {
			words[i] = _mm256_min_epi16(_mm256_max_epi16(words[i], s->limit_low), s->limit_high);
			words[i] = _mm256_permute4x64_epi64(words[i], 0xd8);
		}
	}
	if (bytes == 1) {
		const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
		UKERNEL_UNROLL
		for (unsigned i = 0; i < 2; i++) {
			words[i] = _mm256_packs_epi16(words[2 * i], words[2 * i + 1]);
			words[i] = _mm256_min_epi8(_mm256_max_epi8(words[i], s->limit_low), s->limit_high);
			words[i] = _mm256_permutevar8x32_epi32(words[i], order);
		}
	}
	ukernel_avx2_put(s, bytes, strip, words, to);
}

/* Half a unit, which is in `half`, is added and what is below the point falls off; of a tie, which leaves zeros
 * there, half to even then clears the last bit, and half away from zero has taken one from what is negative
 * before. Small sums come with the bits of the float 1.5 * 2^23 added: as in ukernel_avx512_fx8.h one multiply-add
 * makes 1.5 * 2^23 + x / 2^shift of them, rounded. */
struct ukernel_avx2_round {
	__m256i half, below, one, bits;
	__m256 scale, more;
	__m128i shift;
};

enum { UKERNEL_AVX2_BITS = 0x4b400000, UKERNEL_AVX2_FLOAT = 3 << 22 };

UKERNEL_INLINE struct ukernel_avx2_round ukernel_avx2_round_of(const struct requantize *r, const bool small)
{
	unsigned shift = (unsigned)r->shift;
	return (struct ukernel_avx2_round){
		.half = _mm256_set1_epi32(small	      ? UKERNEL_AVX2_BITS
					  : shift > 0 ? 1 << (shift - 1)
						      : 0),
		.below = _mm256_set1_epi32((int32_t)((1u << shift) - 1)),
		.one = _mm256_set1_epi32(shift > 0),
		.bits = _mm256_set1_epi32(UKERNEL_AVX2_BITS),
		.scale = _mm256_set1_ps(1.0f / (float)(1 << shift)),
		.more = _mm256_set1_ps((float)(UKERNEL_AVX2_FLOAT - (UKERNEL_AVX2_FLOAT >> shift))),
		.shift = _mm_cvtsi32_si128((int)shift),
	};
}

UKERNEL_INLINE __m256i ukernel_avx2_round(__m256i x, const struct ukernel_avx2_round *r,
					  const enum npumem_rounding rounding, const bool small)
{
	if (small)
		return _mm256_sub_epi32(
			_mm256_castps_si256(_mm256_fmadd_ps(_mm256_castsi256_ps(x), r->scale, r->more)), r->bits);
	if (rounding == NPUMEM_NEAREST)
		x = _mm256_sub_epi32(
			x, _mm256_and_si256(_mm256_srli_epi32(_mm256_sub_epi32(x, r->half), 31), r->one));
	__m256i y = _mm256_sra_epi32(x, r->shift);
	if (rounding != NPUMEM_CONVERGENT)
		return y;
	__m256i tie = _mm256_cmpeq_epi32(_mm256_and_si256(x, r->below), _mm256_setzero_si256());
	return _mm256_andnot_si256(_mm256_and_si256(tie, r->one), y);
}

UKERNEL_INLINE int64_t ukernel_avx2_store_rounded(const struct ukernel_result *result,
						  const struct ukernel_strip *strip, unsigned rows,
						  const int32_t *sums, const unsigned bytes,
						  const enum npumem_rounding rounding, const bool small)
{
	enum { AHEAD = 6 }; /* rows are features, whose lines are in no cache */
	const struct ukernel_avx2_round round = ukernel_avx2_round_of(result->requantize, small);
	for (unsigned row = 0; row < AHEAD && row < rows; row++)
		__builtin_prefetch(result->to[row] + result->at, 1);
	struct ukernel_avx2_store store;
	ukernel_avx2_begin(&store, bytes, result->requantize, strip->real);
	for (unsigned row = 0; row < rows; row++, sums += UKERNEL_COLUMNS) {
		__m256i total = _mm256_add_epi32(_mm256_set1_epi32((int32_t)result->totals[row]), round.half);
		__m256i y[UKERNEL_AVX2_VECTORS];
		if (row + AHEAD < rows)
			__builtin_prefetch(result->to[row + AHEAD] + result->at, 1);
		UKERNEL_UNROLL
		for (unsigned v = 0; v < UKERNEL_AVX2_VECTORS; v++) {
			__m256i x = _mm256_load_si256((const __m256i *)(sums + 8 * v));
			y[v] = ukernel_avx2_round(_mm256_add_epi32(x, total), &round, rounding, small);
		}
		ukernel_avx2_finish(&store, bytes, strip, y, result->to[row] + result->at);
	}
	return ukernel_avx2_end(&store);
}

UKERNEL_INLINE int64_t ukernel_avx2_store_of(const struct ukernel_result *result,
					     const struct ukernel_strip *strip, unsigned rows, const int32_t *sums,
					     const unsigned bytes)
{
	enum npumem_rounding rounding = result->requantize->rounding;
	if (rounding == NPUMEM_NEAREST)
		return ukernel_avx2_store_rounded(result, strip, rows, sums, bytes, NPUMEM_NEAREST, false);
	if (rounding == NPUMEM_UP)
		return ukernel_avx2_store_rounded(result, strip, rows, sums, bytes, NPUMEM_UP, false);
	return result->is_small
		       ? ukernel_avx2_store_rounded(result, strip, rows, sums, bytes, NPUMEM_CONVERGENT, true)
		       : ukernel_avx2_store_rounded(result, strip, rows, sums, bytes, NPUMEM_CONVERGENT, false);
}

static int64_t ukernel_avx2_store32(const struct ukernel_result *result, const struct ukernel_strip *strip,
				    unsigned rows, const int32_t *sums)
{
	return result->requantize->bytes == 1 ? ukernel_avx2_store_of(result, strip, rows, sums, 1)
					      : ukernel_avx2_store_of(result, strip, rows, sums, 2);
}

#endif
