/* What the rows' templates are made of, for AVX-512: vectors of 32-bit elements that come from and go to
 * containers of 8 and 16 bits. A tail is a vector with a mask: nothing beyond its n elements is read, written or
 * counted. */
#ifndef DEVICE_VECTOR_AVX512VNNI_H
#define DEVICE_VECTOR_AVX512VNNI_H

#include <immintrin.h>
#include <stdint.h>

#include <npumem/types.h>

#define VECTOR static inline __attribute__((always_inline))
/* Of a loop whose vectors are to be registers. */
#ifdef __clang__
#define VECTOR_UNROLL _Pragma("unroll")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

enum { VECTOR_N = 16, VECTOR_TAILS = 1 };
typedef __m512i vector;

VECTOR __mmask16 vector_lanes(int64_t n)
{
	return n >= VECTOR_N ? 0xffff : (__mmask16)((1u << n) - 1);
}

VECTOR vector vector_set(int32_t x)
{
	return _mm512_set1_epi32(x);
}

/* n elements, sign extended; zero beyond them. */
VECTOR vector vector_load8(const void *from, int64_t n)
{
	__m128i bytes = n >= VECTOR_N ? _mm_loadu_si128(from) : _mm_maskz_loadu_epi8(vector_lanes(n), from);
	return _mm512_cvtepi8_epi32(bytes);
}

VECTOR vector vector_load16(const void *from, int64_t n)
{
	__m256i words = n >= VECTOR_N ? _mm256_loadu_si256(from) : _mm256_maskz_loadu_epi16(vector_lanes(n), from);
	return _mm512_cvtepi16_epi32(words);
}

VECTOR vector vector_load32(const void *from, int64_t n)
{
	return n >= VECTOR_N ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi32(vector_lanes(n), from);
}

/* As they lie in memory: n bytes of elements of 1 or 2, `bytes`, signed. */
enum { VECTOR_BYTES = 64 };

VECTOR __mmask64 vector_byte_lanes(int64_t n)
{
	return n >= VECTOR_BYTES ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
}

VECTOR vector vector_load_raw(const void *from, int64_t n)
{
	return _mm512_maskz_loadu_epi8(vector_byte_lanes(n), from);
}

VECTOR void vector_store_raw(void *to, vector x, int64_t n)
{
	_mm512_mask_storeu_epi8(to, vector_byte_lanes(n), x);
}

VECTOR vector vector_set_raw(int32_t x, unsigned bytes)
{
	return bytes == 1 ? _mm512_set1_epi8((char)x) : _mm512_set1_epi16((short)x);
}

VECTOR vector vector_min_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_min_epi8(a, b) : _mm512_min_epi16(a, b);
}

VECTOR vector vector_max_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_max_epi8(a, b) : _mm512_max_epi16(a, b);
}

/* Elements 0, stride, … of an array of 32 bits. */
VECTOR vector vector_load32_every(const int32_t *from, int64_t stride, int64_t n)
{
	vector index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	if (stride == 1)
		return vector_load32(from, n);
	index = _mm512_mullo_epi32(index, _mm512_set1_epi32((int32_t)stride));
	if (stride == 2) {
		int64_t last = 2 * n - 1;
		vector low = vector_load32(from, last);
		vector high = vector_load32(from + VECTOR_N, last > VECTOR_N ? last - VECTOR_N : 0);
		return _mm512_permutex2var_epi32(low, index, high);
	}
	return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), vector_lanes(n), index, from, sizeof(*from));
}

VECTOR void vector_store32(void *to, vector x, int64_t n)
{
	if (n >= VECTOR_N)
		_mm512_storeu_si512(to, x);
	else
		_mm512_mask_storeu_epi32(to, vector_lanes(n), x);
}

/* The low bits of n elements. */
VECTOR void vector_store8(void *to, vector x, int64_t n)
{
	__m128i bytes = _mm512_cvtepi32_epi8(x);
	if (n >= VECTOR_N)
		_mm_storeu_si128(to, bytes);
	else
		_mm_mask_storeu_epi8(to, vector_lanes(n), bytes);
}

VECTOR void vector_store16(void *to, vector x, int64_t n)
{
	__m256i words = _mm512_cvtepi32_epi16(x);
	if (n >= VECTOR_N)
		_mm256_storeu_si256(to, words);
	else
		_mm256_mask_storeu_epi16(to, vector_lanes(n), words);
}

VECTOR vector vector_add(vector a, vector b)
{
	return _mm512_add_epi32(a, b);
}

VECTOR vector vector_sub(vector a, vector b)
{
	return _mm512_sub_epi32(a, b);
}

VECTOR vector vector_mul(vector a, vector b)
{
	return _mm512_mullo_epi32(a, b);
}

VECTOR vector vector_and(vector a, vector b)
{
	return _mm512_and_si512(a, b);
}

VECTOR vector vector_or(vector a, vector b)
{
	return _mm512_or_si512(a, b);
}

VECTOR vector vector_min(vector a, vector b)
{
	return _mm512_min_epi32(a, b);
}

VECTOR vector vector_max(vector a, vector b)
{
	return _mm512_max_epi32(a, b);
}

/* By a count for each element; one past 31 gives 0, or the sign. */
VECTOR vector vector_left(vector a, vector count)
{
	return _mm512_sllv_epi32(a, count);
}

VECTOR vector vector_right(vector a, vector count)
{
	return _mm512_srav_epi32(a, count);
}

/* b where a is negative, else a. */
VECTOR vector vector_if_negative(vector a, vector b)
{
	return _mm512_mask_blend_epi32(_mm512_movepi32_mask(a), a, b);
}

/* b where a is zero, else x. */
VECTOR vector vector_if_zero(vector a, vector x, vector b)
{
	return _mm512_mask_blend_epi32(_mm512_testn_epi32_mask(a, a), x, b);
}

/* Adds one to the counts where x, of n elements, is zero. */
VECTOR vector vector_count_zeros(vector counts, vector x, int64_t n)
{
	__mmask16 zero = _mm512_mask_testn_epi32_mask(vector_lanes(n), x, x);
	return _mm512_mask_add_epi32(counts, zero, counts, _mm512_set1_epi32(1));
}

enum { VECTOR_DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC };

/* floor(a * scale / b), with its lowest bit set where that is not exact; what is past +-2^20 may be anything past
 * it. The elements of a and b have 8 bits, so that those of a float decide; `scale` is a power of two. */
VECTOR vector vector_quotient8(vector a, vector b, double scale)
{
	__m512 end = _mm512_set1_ps(1 << 20);
	__m512 x = _mm512_div_ps(_mm512_cvtepi32_ps(a), _mm512_cvtepi32_ps(b));
	x = _mm512_mul_ps(x, _mm512_set1_ps((float)scale));
	x = _mm512_max_ps(_mm512_min_ps(x, end), _mm512_sub_ps(_mm512_setzero_ps(), end));
	vector floor = _mm512_cvt_roundps_epi32(x, VECTOR_DOWN);
	__mmask16 inexact = _mm512_cmp_ps_mask(x, _mm512_cvtepi32_ps(floor), _CMP_NEQ_UQ);
	return _mm512_mask_or_epi32(floor, inexact, floor, _mm512_set1_epi32(1));
}

VECTOR __m256i vector_quotient_half(__m256i a, __m256i b, double scale)
{
	__m512d end = _mm512_set1_pd(1 << 20);
	__m512d x = _mm512_div_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(b));
	x = _mm512_mul_pd(x, _mm512_set1_pd(scale));
	x = _mm512_max_pd(_mm512_min_pd(x, end), _mm512_sub_pd(_mm512_setzero_pd(), end));
	__m256i floor = _mm512_cvt_roundpd_epi32(x, VECTOR_DOWN);
	__mmask8 inexact = _mm512_cmp_pd_mask(x, _mm512_cvtepi32_pd(floor), _CMP_NEQ_UQ);
	return _mm256_mask_or_epi32(floor, inexact, floor, _mm256_set1_epi32(1));
}

/* The same for elements of 16 bits, by doubles. */
VECTOR vector vector_quotient16(vector a, vector b, double scale)
{
	__m256i low = vector_quotient_half(_mm512_castsi512_si256(a), _mm512_castsi512_si256(b), scale);
	__m256i high =
		vector_quotient_half(_mm512_extracti64x4_epi64(a, 1), _mm512_extracti64x4_epi64(b, 1), scale);
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* Adds one to the counts where x, of n elements, is outside [low, high]. */
VECTOR vector vector_count_outside(vector counts, vector x, vector low, vector high, int64_t n)
{
	__mmask16 outside = _mm512_mask_cmpgt_epu32_mask(vector_lanes(n), _mm512_sub_epi32(x, low),
							 _mm512_sub_epi32(high, low));
	return _mm512_mask_add_epi32(counts, outside, counts, _mm512_set1_epi32(1));
}

/* What is past +-2^20 may be anything past it. */
VECTOR __m256i vector_of_doubles(__m512d x, enum npumem_rounding rounding)
{
	enum { EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
	__m512d end = _mm512_set1_pd(1 << 20), sign = _mm512_set1_pd(-0.0), half = _mm512_set1_pd(0.5);
	x = _mm512_max_pd(_mm512_min_pd(x, end), _mm512_xor_pd(end, sign));
	if (rounding == NPUMEM_CONVERGENT)
		return _mm512_cvt_roundpd_epi32(x, EVEN);
	if (rounding == NPUMEM_UP)
		return _mm512_cvt_roundpd_epi32(_mm512_add_pd(x, half), VECTOR_DOWN);
	return _mm512_cvttpd_epi32(_mm512_add_pd(x, _mm512_or_pd(half, _mm512_and_pd(x, sign))));
}

VECTOR __m256i vector_scaled_half(__m256i a, __m256i b, double scale, enum npumem_rounding rounding)
{
	__m512d x = _mm512_mul_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(b));
	return vector_of_doubles(_mm512_mul_pd(x, _mm512_set1_pd(scale)), rounding);
}

/* a * b * scale, rounded to an integer; what is past +-2^20 may be anything past it. By doubles, which are exact
 * for products below 2^52 and a scale of 2^-52 to 2^52. */
VECTOR vector vector_scaled(vector a, vector b, double scale, enum npumem_rounding rounding)
{
	__m256i low = vector_scaled_half(_mm512_castsi512_si256(a), _mm512_castsi512_si256(b), scale, rounding);
	__m256i high = vector_scaled_half(_mm512_extracti64x4_epi64(a, 1), _mm512_extracti64x4_epi64(b, 1), scale,
					  rounding);
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

struct vector_scales {
	double coarse, beside, alone;
};

VECTOR __m256i vector_scaled_sum_half(__m256i coarse, __m256i fine, const struct vector_scales *scales,
				      enum npumem_rounding rounding)
{
	__m512d scale = _mm512_mask_blend_pd(_mm256_testn_epi32_mask(coarse, coarse),
					     _mm512_set1_pd(scales->beside), _mm512_set1_pd(scales->alone));
	__m512d x = _mm512_mul_pd(_mm512_cvtepi32_pd(coarse), _mm512_set1_pd(scales->coarse));
	return vector_of_doubles(_mm512_fmadd_pd(_mm512_cvtepi32_pd(fine), scale, x), rounding);
}

/* coarse and fine, each times its scale, which the finer one has by whether the coarser one is zero: rounded, and
 * past +-2^20 as above. */
VECTOR vector vector_scaled_sum(vector coarse, vector fine, const struct vector_scales *scales,
				enum npumem_rounding rounding)
{
	__m256i low = vector_scaled_sum_half(_mm512_castsi512_si256(coarse), _mm512_castsi512_si256(fine), scales,
					     rounding);
	__m256i high = vector_scaled_sum_half(_mm512_extracti64x4_epi64(coarse, 1),
					      _mm512_extracti64x4_epi64(fine, 1), scales, rounding);
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

VECTOR __m256i vector_scaled_mean_half(__m256i a, int32_t n, double scale, enum npumem_rounding rounding)
{
	__m512d x = _mm512_mul_pd(_mm512_cvtepi32_pd(a), _mm512_set1_pd(scale));
	return vector_of_doubles(_mm512_div_pd(x, _mm512_set1_pd(n)), rounding);
}

/* a * scale / n, likewise, for 0 < n <= 2^16. */
VECTOR vector vector_scaled_mean(vector a, int32_t n, double scale, enum npumem_rounding rounding)
{
	__m256i low = vector_scaled_mean_half(_mm512_castsi512_si256(a), n, scale, rounding);
	__m256i high = vector_scaled_mean_half(_mm512_extracti64x4_epi64(a, 1), n, scale, rounding);
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/* n reals times a power of two, rounded to integers; what is past +-2^20 may be anything past it. The product is
 * exact, or so small that it is none; a sum with a half would not be. */
VECTOR vector vector_of_reals(const float *from, float scale, enum npumem_rounding rounding, int64_t n)
{
	__m512 x = n >= VECTOR_N ? _mm512_loadu_ps(from) : _mm512_maskz_loadu_ps(vector_lanes(n), from);
	__m512 end = _mm512_set1_ps(1 << 20), zero = _mm512_setzero_ps(), half = _mm512_set1_ps(0.5F);
	x = _mm512_mul_ps(x, _mm512_set1_ps(scale));
	x = _mm512_max_ps(_mm512_min_ps(x, end), _mm512_sub_ps(zero, end));
	if (rounding == NPUMEM_CONVERGENT)
		return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
	vector floor = _mm512_cvt_roundps_epi32(x, VECTOR_DOWN);
	__m512 rest = _mm512_sub_ps(x, _mm512_cvtepi32_ps(floor));
	__mmask16 up = _mm512_cmp_ps_mask(rest, half, _CMP_GE_OQ);
	if (rounding == NPUMEM_NEAREST)
		up &= (__mmask16)(_mm512_cmp_ps_mask(rest, half, _CMP_GT_OQ) |
				  _mm512_cmp_ps_mask(x, zero, _CMP_GE_OQ));
	return _mm512_mask_add_epi32(floor, up, floor, _mm512_set1_epi32(1));
}

/* Elements of 16 bits times a power of two. */
VECTOR void vector_store_reals(float *to, vector x, float scale, int64_t n)
{
	__m512 reals = _mm512_mul_ps(_mm512_cvtepi32_ps(x), _mm512_set1_ps(scale));
	if (n >= VECTOR_N)
		_mm512_storeu_ps(to, reals);
	else
		_mm512_mask_storeu_ps(to, vector_lanes(n), reals);
}

/* Words `at` and at + 1, in the low and the high half of each element. */
VECTOR vector vector_gather_pairs(const int16_t *words, vector at)
{
	return _mm512_i32gather_epi32(at, words, sizeof(*words));
}

/* Up to 384 words, in registers. */
enum { VECTOR_TABLE = 384 };
struct vector_table {
	__m512i words[VECTOR_TABLE / 32];
};

VECTOR struct vector_table vector_table_load(const int16_t *words)
{
	struct vector_table table;
	VECTOR_UNROLL
	for (int i = 0; i < VECTOR_TABLE / 32; i++)
		table.words[i] = _mm512_loadu_si512(words + 32 * i);
	return table;
}

/* Words `at` and at + 1 of the table, in the low and the high half of each element. */
VECTOR vector vector_table_pairs(const struct vector_table *table, vector at)
{
	__m512i index = _mm512_or_si512(at, _mm512_slli_epi32(_mm512_add_epi32(at, _mm512_set1_epi32(1)), 16));
	__m512i pairs = _mm512_permutex2var_epi16(table->words[0], index, table->words[1]);
	VECTOR_UNROLL
	for (int i = 2; i < VECTOR_TABLE / 32; i += 2) {
		__m512i words = _mm512_permutex2var_epi16(table->words[i], index, table->words[i + 1]);
		__mmask32 there = _mm512_cmpge_epu16_mask(index, _mm512_set1_epi16((short)(32 * i)));
		pairs = _mm512_mask_mov_epi16(pairs, there, words);
	}
	return pairs;
}

/* Words of 16 bits, two to each element. */
enum { VECTOR_WORDS = 2 * VECTOR_N };

/* n elements, sign extended; zero beyond them, where n may be less than 0. */
VECTOR __mmask32 vector_word_lanes(int64_t n)
{
	return n >= VECTOR_WORDS ? ~UINT32_C(0) : n <= 0 ? 0 : (UINT32_C(1) << n) - 1;
}

VECTOR vector vector_load_words8(const void *from, int64_t n)
{
	return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(vector_word_lanes(n), from));
}

VECTOR vector vector_load_words16(const void *from, int64_t n)
{
	return _mm512_maskz_loadu_epi16(vector_word_lanes(n), from);
}

/* The low bytes, without a sign, and the high ones with it. */
VECTOR vector vector_words_low(vector words)
{
	return _mm512_and_si512(words, _mm512_set1_epi16(0xff));
}

VECTOR vector vector_words_high(vector words)
{
	return _mm512_srai_epi16(words, 8);
}

/* Words 0 and 1 in an element, words stride and stride + 1 in the next one, … */
VECTOR vector vector_load_pairs(const int16_t *from, int64_t stride)
{
	vector index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	index = _mm512_mullo_epi32(index, _mm512_set1_epi32((int32_t)stride));
	return _mm512_i32gather_epi32(index, from, sizeof(*from));
}

/* sums + the products of the words of a and b, those of an element together. */
VECTOR vector vector_add_pairs(vector sums, vector a, vector b)
{
	return _mm512_dpwssd_epi32(sums, a, b);
}

/* Words i of a and of b together in an element: in an order that vector_words_first and _second undo, for words
 * [0, VECTOR_N) and those after them. */
VECTOR vector vector_words_lower(vector a, vector b)
{
	return _mm512_unpacklo_epi16(a, b);
}

VECTOR vector vector_words_upper(vector a, vector b)
{
	return _mm512_unpackhi_epi16(a, b);
}

/* The same of elements. */
VECTOR vector vector_lower(vector a, vector b)
{
	return _mm512_unpacklo_epi32(a, b);
}

VECTOR vector vector_upper(vector a, vector b)
{
	return _mm512_unpackhi_epi32(a, b);
}

VECTOR vector vector_words_first(vector lower, vector upper)
{
	vector order = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
	return _mm512_permutex2var_epi32(lower, order, upper);
}

VECTOR vector vector_words_second(vector lower, vector upper)
{
	vector order = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
	return _mm512_permutex2var_epi32(lower, order, upper);
}

/* Element i is the sum of all of x[i]: each step halves what is left of a vector, and puts two into one. */
VECTOR vector vector_sum_each(const vector *x)
{
	vector fours[4], halves[2];
	VECTOR_UNROLL
	for (int i = 0; i < 4; i++) {
		const vector *y = x + 4 * i;
		vector a = _mm512_add_epi32(_mm512_unpacklo_epi32(y[0], y[1]), _mm512_unpackhi_epi32(y[0], y[1]));
		vector b = _mm512_add_epi32(_mm512_unpacklo_epi32(y[2], y[3]), _mm512_unpackhi_epi32(y[2], y[3]));
		fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
	}
	VECTOR_UNROLL
	for (int i = 0; i < 2; i++)
		halves[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(fours[2 * i], fours[2 * i + 1], 0x88),
					     _mm512_shuffle_i32x4(fours[2 * i], fours[2 * i + 1], 0xdd));
	return _mm512_add_epi32(_mm512_shuffle_i32x4(halves[0], halves[1], 0x88),
				_mm512_shuffle_i32x4(halves[0], halves[1], 0xdd));
}

/* The upper half in the lower. */
VECTOR vector vector_upper_half(vector x)
{
	return _mm512_shuffle_i32x4(x, x, 0xee);
}

VECTOR void vector_add_wide_half(int64_t *sums, __m256i low, __m256i high, int64_t n)
{
	__mmask8 lanes = n >= 8 ? 0xff : (__mmask8)((1u << n) - 1);
	__m512i x = _mm512_slli_epi64(_mm512_cvtepi32_epi64(high), 8);
	x = _mm512_add_epi64(x, _mm512_cvtepi32_epi64(low));
	_mm512_mask_storeu_epi64(sums, lanes, _mm512_add_epi64(x, _mm512_maskz_loadu_epi64(lanes, sums)));
}

/* sums[i] += low[i] + 256 * high[i] for the first n elements. */
VECTOR void vector_add_wide(int64_t *sums, vector low, vector high, int64_t n)
{
	vector_add_wide_half(sums, _mm512_castsi512_si256(low), _mm512_castsi512_si256(high), n);
	if (n > VECTOR_N / 2)
		vector_add_wide_half(sums + VECTOR_N / 2, _mm512_extracti64x4_epi64(low, 1),
				     _mm512_extracti64x4_epi64(high, 1), n - VECTOR_N / 2);
}

/* 2 * VECTOR_WORDS elements of 16 bits: eight of them in turn are in `low` and in `high`, as unpacking bytes
 * leaves them, so that a pack brings them back in order. */
struct vector_pair {
	vector low, high;
};

VECTOR struct vector_pair vector_pair_load8(const void *from, bool is_unsigned)
{
	vector x = _mm512_loadu_si512(from), zero = _mm512_setzero_si512();
	if (is_unsigned)
		return (struct vector_pair){_mm512_unpacklo_epi8(x, zero), _mm512_unpackhi_epi8(x, zero)};
	return (struct vector_pair){_mm512_srai_epi16(_mm512_unpacklo_epi8(x, x), 8),
				    _mm512_srai_epi16(_mm512_unpackhi_epi8(x, x), 8)};
}

VECTOR struct vector_pair vector_pair_load16(const int16_t *from)
{
	vector a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + VECTOR_WORDS);
	vector low = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13),
	       high = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
	return (struct vector_pair){_mm512_permutex2var_epi64(a, low, b), _mm512_permutex2var_epi64(a, high, b)};
}

VECTOR void vector_pair_store16(int16_t *to, struct vector_pair x)
{
	vector first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
	       second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
	_mm512_storeu_si512(to, _mm512_permutex2var_epi64(x.low, first, x.high));
	_mm512_storeu_si512(to + VECTOR_WORDS, _mm512_permutex2var_epi64(x.low, second, x.high));
}

/* Saturated to bytes. */
VECTOR vector vector_pair_pack(struct vector_pair x)
{
	return _mm512_packs_epi16(x.low, x.high);
}

VECTOR vector vector_pair_pack_unsigned(struct vector_pair x)
{
	return _mm512_packus_epi16(x.low, x.high);
}

/* How many are outside [low, high]. */
VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	vector from = _mm512_set1_epi16((short)low), width = _mm512_set1_epi16((short)(high - low));
	__mmask32 a = _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(x.low, from), width);
	__mmask32 b = _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(x.high, from), width);
	return __builtin_popcountll((uint64_t)b << 32 | a);
}

VECTOR struct vector_pair vector_pair_left(struct vector_pair x, unsigned count)
{
	__m128i by = _mm_cvtsi32_si128((int)count);
	return (struct vector_pair){_mm512_sll_epi16(x.low, by), _mm512_sll_epi16(x.high, by)};
}

VECTOR struct vector_pair vector_pair_add(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm512_add_epi16(a.low, b.low), _mm512_add_epi16(a.high, b.high)};
}

VECTOR struct vector_pair vector_pair_sub(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm512_sub_epi16(a.low, b.low), _mm512_sub_epi16(a.high, b.high)};
}

VECTOR struct vector_pair vector_pair_mul(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm512_mullo_epi16(a.low, b.low), _mm512_mullo_epi16(a.high, b.high)};
}

/* Of words, each: x * factor / 2^15, halves rounded up. */
VECTOR vector vector_words_scale(vector x, vector factor)
{
	return _mm512_mulhrs_epi16(x, factor);
}

VECTOR vector vector_words_sub(vector a, vector b)
{
	return _mm512_sub_epi16(a, b);
}

VECTOR vector vector_words_right(vector a, unsigned count)
{
	return _mm512_sra_epi16(a, _mm_cvtsi32_si128((int)count));
}

/* x where a is b, else zero. */
VECTOR vector vector_words_if_same(vector a, vector b, vector x)
{
	return _mm512_maskz_mov_epi16(_mm512_cmpeq_epi16_mask(a, b), x);
}

/* With saturation, and as it wraps. */
VECTOR vector vector_add_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_adds_epi8(a, b) : _mm512_adds_epi16(a, b);
}

VECTOR vector vector_sub_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_subs_epi8(a, b) : _mm512_subs_epi16(a, b);
}

VECTOR vector vector_wrapped_add_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_add_epi8(a, b) : _mm512_add_epi16(a, b);
}

VECTOR vector vector_wrapped_sub_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm512_sub_epi8(a, b) : _mm512_sub_epi16(a, b);
}

/* How many of the elements of n bytes differ. */
VECTOR int64_t vector_count_other_raw(vector a, vector b, unsigned bytes, int64_t n)
{
	if (bytes == 1)
		return __builtin_popcountll(_mm512_mask_cmpneq_epi8_mask(vector_byte_lanes(n), a, b));
	return __builtin_popcount(_mm512_mask_cmpneq_epi16_mask(vector_word_lanes(n / 2), a, b));
}

VECTOR vector vector_words_left(vector a, unsigned count)
{
	return _mm512_sll_epi16(a, _mm_cvtsi32_si128((int)count));
}

VECTOR vector vector_words_logical_right(vector a, unsigned count)
{
	return _mm512_srl_epi16(a, _mm_cvtsi32_si128((int)count));
}

/* to + the elements of x, some to each element. */
VECTOR vector vector_sum_raw(vector to, vector x, unsigned bytes)
{
	return bytes == 1 ? _mm512_dpbusd_epi32(to, _mm512_set1_epi8(1), x)
			  : _mm512_dpwssd_epi32(to, _mm512_set1_epi16(1), x);
}

/* Element i + by in element i, from the last one on with the first. */
VECTOR vector vector_rotate(vector x, int by)
{
	vector index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	return _mm512_permutexvar_epi32(_mm512_add_epi32(index, _mm512_set1_epi32(by)), x);
}

VECTOR int32_t vector_element0(vector x)
{
	return _mm_cvtsi128_si32(_mm512_castsi512_si128(x));
}

/* Elements 0, 2, … of a and then of b. */
VECTOR vector vector_even_raw(vector a, vector b, unsigned bytes)
{
	static const uint8_t even[VECTOR_BYTES] = {0,	2,   4,	  6,   8,   10,	 12,  14,  16,	18,  20,  22,  24,
						   26,	28,  30,  32,  34,  36,	 38,  40,  42,	44,  46,  48,  50,
						   52,	54,  56,  58,  60,  62,	 64,  66,  68,	70,  72,  74,  76,
						   78,	80,  82,  84,  86,  88,	 90,  92,  94,	96,  98,  100, 102,
						   104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126};
	if (bytes == 1)
		return _mm512_permutex2var_epi8(a, _mm512_loadu_si512(even), b);
	vector index = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)even));
	return _mm512_permutex2var_epi16(a, index, b);
}

/* a in the first n elements, b in the rest. */
VECTOR vector vector_first(int64_t n, vector a, vector b)
{
	return _mm512_mask_blend_epi32(vector_lanes(n), b, a);
}

VECTOR int64_t vector_total(vector counts)
{
	return _mm512_reduce_add_epi32(counts);
}

#endif
