/* What the rows' templates are made of, for AVX2: as vector__avx512vnni.h, but there are no masks: n is always
 * that of a whole vector, and what is left of a row is another's. */
#ifndef DEVICE_VECTOR_AVX2_H
#define DEVICE_VECTOR_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#include <npumem/types.h>

#define VECTOR static inline __attribute__((always_inline))
#ifdef __clang__
#define VECTOR_UNROLL _Pragma("unroll")
#else
#define VECTOR_UNROLL _Pragma("GCC unroll 16")
#endif

enum { VECTOR_N = 8, VECTOR_TAILS = 0 };
typedef __m256i vector;

VECTOR vector vector_set(int32_t x)
{
	return _mm256_set1_epi32(x);
}

VECTOR vector vector_load8(const void *from, int64_t n)
{
	(void)n;
	return _mm256_cvtepi8_epi32(_mm_loadl_epi64(from));
}

VECTOR vector vector_load16(const void *from, int64_t n)
{
	(void)n;
	return _mm256_cvtepi16_epi32(_mm_loadu_si128(from));
}

VECTOR vector vector_load32(const void *from, int64_t n)
{
	(void)n;
	return _mm256_loadu_si256(from);
}

enum { VECTOR_BYTES = 32 };

VECTOR vector vector_load_raw(const void *from, int64_t n)
{
	(void)n;
	return _mm256_loadu_si256(from);
}

VECTOR void vector_store_raw(void *to, vector x, int64_t n)
{
	(void)n;
	_mm256_storeu_si256(to, x);
}

VECTOR vector vector_set_raw(int32_t x, unsigned bytes)
{
	return bytes == 1 ? _mm256_set1_epi8((char)x) : _mm256_set1_epi16((short)x);
}

VECTOR vector vector_min_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_min_epi8(a, b) : _mm256_min_epi16(a, b);
}

VECTOR vector vector_max_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_max_epi8(a, b) : _mm256_max_epi16(a, b);
}

VECTOR vector vector_load32_every(const int32_t *from, int64_t stride, int64_t n)
{
	vector index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	if (stride == 1)
		return vector_load32(from, n);
	index = _mm256_mullo_epi32(index, _mm256_set1_epi32((int32_t)stride));
	return _mm256_i32gather_epi32(from, index, sizeof(*from));
}

VECTOR void vector_store32(void *to, vector x, int64_t n)
{
	(void)n;
	_mm256_storeu_si256(to, x);
}

enum { VECTOR_WORDS = 2 * VECTOR_N };

VECTOR vector vector_load_words8(const void *from, int64_t n)
{
	(void)n;
	return _mm256_cvtepi8_epi16(_mm_loadu_si128(from));
}

VECTOR vector vector_load_words16(const void *from, int64_t n)
{
	(void)n;
	return _mm256_loadu_si256(from);
}

VECTOR vector vector_words_low(vector words)
{
	return _mm256_and_si256(words, _mm256_set1_epi16(0xff));
}

VECTOR vector vector_words_high(vector words)
{
	return _mm256_srai_epi16(words, 8);
}

VECTOR vector vector_load_pairs(const int16_t *from, int64_t stride)
{
	vector index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	index = _mm256_mullo_epi32(index, _mm256_set1_epi32((int32_t)stride));
	return _mm256_i32gather_epi32((const int *)(const void *)from, index, sizeof(*from));
}

VECTOR vector vector_add_pairs(vector sums, vector a, vector b)
{
	return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
}

VECTOR vector vector_words_lower(vector a, vector b)
{
	return _mm256_unpacklo_epi16(a, b);
}

VECTOR vector vector_words_upper(vector a, vector b)
{
	return _mm256_unpackhi_epi16(a, b);
}

VECTOR vector vector_lower(vector a, vector b)
{
	return _mm256_unpacklo_epi32(a, b);
}

VECTOR vector vector_upper(vector a, vector b)
{
	return _mm256_unpackhi_epi32(a, b);
}

VECTOR vector vector_words_first(vector lower, vector upper)
{
	return _mm256_permute2x128_si256(lower, upper, 0x20);
}

VECTOR vector vector_words_second(vector lower, vector upper)
{
	return _mm256_permute2x128_si256(lower, upper, 0x31);
}

VECTOR vector vector_sum_each(const vector *x)
{
	vector a = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
	vector b = _mm256_hadd_epi32(_mm256_hadd_epi32(x[4], x[5]), _mm256_hadd_epi32(x[6], x[7]));
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
}

VECTOR vector vector_upper_half(vector x)
{
	return _mm256_permute2x128_si256(x, x, 0x11);
}

VECTOR void vector_add_wide_half(int64_t *sums, __m128i low, __m128i high)
{
	__m256i x = _mm256_slli_epi64(_mm256_cvtepi32_epi64(high), 8);
	x = _mm256_add_epi64(x, _mm256_cvtepi32_epi64(low));
	_mm256_storeu_si256((void *)sums, _mm256_add_epi64(x, _mm256_loadu_si256((const void *)sums)));
}

/* n is VECTOR_N / 2 or VECTOR_N at least. */
VECTOR void vector_add_wide(int64_t *sums, vector low, vector high, int64_t n)
{
	vector_add_wide_half(sums, _mm256_castsi256_si128(low), _mm256_castsi256_si128(high));
	if (n > VECTOR_N / 2)
		vector_add_wide_half(sums + VECTOR_N / 2, _mm256_extracti128_si256(low, 1),
				     _mm256_extracti128_si256(high, 1));
}

struct vector_pair {
	vector low, high;
};

VECTOR struct vector_pair vector_pair_load8(const void *from, bool is_unsigned)
{
	vector x = _mm256_loadu_si256(from), zero = _mm256_setzero_si256();
	if (is_unsigned)
		return (struct vector_pair){_mm256_unpacklo_epi8(x, zero), _mm256_unpackhi_epi8(x, zero)};
	return (struct vector_pair){_mm256_srai_epi16(_mm256_unpacklo_epi8(x, x), 8),
				    _mm256_srai_epi16(_mm256_unpackhi_epi8(x, x), 8)};
}

VECTOR struct vector_pair vector_pair_load16(const int16_t *from)
{
	vector a = _mm256_loadu_si256((const void *)from);
	vector b = _mm256_loadu_si256((const void *)(from + VECTOR_WORDS));
	return (struct vector_pair){_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31)};
}

VECTOR void vector_pair_store16(int16_t *to, struct vector_pair x)
{
	_mm256_storeu_si256((void *)to, _mm256_permute2x128_si256(x.low, x.high, 0x20));
	_mm256_storeu_si256((void *)(to + VECTOR_WORDS), _mm256_permute2x128_si256(x.low, x.high, 0x31));
}

VECTOR vector vector_pair_pack(struct vector_pair x)
{
	return _mm256_packs_epi16(x.low, x.high);
}

VECTOR vector vector_pair_pack_unsigned(struct vector_pair x)
{
	return _mm256_packus_epi16(x.low, x.high);
}

VECTOR vector vector_words_outside(vector x, vector low, vector high)
{
	return _mm256_or_si256(_mm256_cmpgt_epi16(low, x), _mm256_cmpgt_epi16(x, high));
}

VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	vector from = _mm256_set1_epi16((short)low), to = _mm256_set1_epi16((short)high);
	vector bytes =
		_mm256_packs_epi16(vector_words_outside(x.low, from, to), vector_words_outside(x.high, from, to));
	return __builtin_popcount((unsigned)_mm256_movemask_epi8(bytes));
}

VECTOR struct vector_pair vector_pair_left(struct vector_pair x, unsigned count)
{
	__m128i by = _mm_cvtsi32_si128((int)count);
	return (struct vector_pair){_mm256_sll_epi16(x.low, by), _mm256_sll_epi16(x.high, by)};
}

VECTOR struct vector_pair vector_pair_add(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm256_add_epi16(a.low, b.low), _mm256_add_epi16(a.high, b.high)};
}

VECTOR struct vector_pair vector_pair_sub(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm256_sub_epi16(a.low, b.low), _mm256_sub_epi16(a.high, b.high)};
}

VECTOR struct vector_pair vector_pair_mul(struct vector_pair a, struct vector_pair b)
{
	return (struct vector_pair){_mm256_mullo_epi16(a.low, b.low), _mm256_mullo_epi16(a.high, b.high)};
}

VECTOR vector vector_words_scale(vector x, vector factor)
{
	return _mm256_mulhrs_epi16(x, factor);
}

VECTOR vector vector_words_sub(vector a, vector b)
{
	return _mm256_sub_epi16(a, b);
}

VECTOR vector vector_words_right(vector a, unsigned count)
{
	return _mm256_sra_epi16(a, _mm_cvtsi32_si128((int)count));
}

VECTOR vector vector_words_if_same(vector a, vector b, vector x)
{
	return _mm256_and_si256(_mm256_cmpeq_epi16(a, b), x);
}

VECTOR vector vector_add_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_adds_epi8(a, b) : _mm256_adds_epi16(a, b);
}

VECTOR vector vector_sub_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_subs_epi8(a, b) : _mm256_subs_epi16(a, b);
}

VECTOR vector vector_wrapped_add_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_add_epi8(a, b) : _mm256_add_epi16(a, b);
}

VECTOR vector vector_wrapped_sub_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_sub_epi8(a, b) : _mm256_sub_epi16(a, b);
}

VECTOR int64_t vector_count_other_raw(vector a, vector b, unsigned bytes, int64_t n)
{
	(void)n;
	vector same = bytes == 1 ? _mm256_cmpeq_epi8(a, b) : _mm256_cmpeq_epi16(a, b);
	return (VECTOR_BYTES - __builtin_popcount((unsigned)_mm256_movemask_epi8(same))) / (int)bytes;
}

VECTOR vector vector_words_left(vector a, unsigned count)
{
	return _mm256_sll_epi16(a, _mm_cvtsi32_si128((int)count));
}

VECTOR vector vector_words_logical_right(vector a, unsigned count)
{
	return _mm256_srl_epi16(a, _mm_cvtsi32_si128((int)count));
}

VECTOR vector vector_sum_raw(vector to, vector x, unsigned bytes)
{
	if (bytes == 1)
		x = _mm256_maddubs_epi16(_mm256_set1_epi8(1), x);
	return _mm256_add_epi32(to, _mm256_madd_epi16(_mm256_set1_epi16(1), x));
}

VECTOR vector vector_rotate(vector x, int by)
{
	vector index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	return _mm256_permutevar8x32_epi32(x, _mm256_add_epi32(index, _mm256_set1_epi32(by)));
}

VECTOR int32_t vector_element0(vector x)
{
	return _mm_cvtsi128_si32(_mm256_castsi256_si128(x));
}

VECTOR vector vector_even_raw(vector a, vector b, unsigned bytes)
{
	vector low = _mm256_set1_epi16(0xff), packed;
	if (bytes == 1)
		packed = _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low));
	else
		packed = _mm256_packs_epi32(_mm256_srai_epi32(_mm256_slli_epi32(a, 16), 16),
					    _mm256_srai_epi32(_mm256_slli_epi32(b, 16), 16));
	return _mm256_permute4x64_epi64(packed, 0xd8);
}

VECTOR vector vector_first(int64_t n, vector a, vector b)
{
	(void)n, (void)b;
	return a;
}

/* The low 16 bits of each element: the pack saturates, so what is above them has to be the sign. */
VECTOR __m128i vector_words(vector x)
{
	vector whole = _mm256_srai_epi32(_mm256_slli_epi32(x, 16), 16);
	return _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
}

VECTOR void vector_store8(void *to, vector x, int64_t n)
{
	(void)n;
	__m128i low = _mm_and_si128(vector_words(x), _mm_set1_epi16(0xff));
	_mm_storel_epi64(to, _mm_packus_epi16(low, low));
}

VECTOR void vector_store16(void *to, vector x, int64_t n)
{
	(void)n;
	_mm_storeu_si128(to, vector_words(x));
}

VECTOR vector vector_add(vector a, vector b)
{
	return _mm256_add_epi32(a, b);
}

VECTOR vector vector_sub(vector a, vector b)
{
	return _mm256_sub_epi32(a, b);
}

VECTOR vector vector_mul(vector a, vector b)
{
	return _mm256_mullo_epi32(a, b);
}

VECTOR vector vector_and(vector a, vector b)
{
	return _mm256_and_si256(a, b);
}

VECTOR vector vector_or(vector a, vector b)
{
	return _mm256_or_si256(a, b);
}

VECTOR vector vector_min(vector a, vector b)
{
	return _mm256_min_epi32(a, b);
}

VECTOR vector vector_max(vector a, vector b)
{
	return _mm256_max_epi32(a, b);
}

VECTOR vector vector_left(vector a, vector count)
{
	return _mm256_sllv_epi32(a, count);
}

VECTOR vector vector_right(vector a, vector count)
{
	return _mm256_srav_epi32(a, count);
}

VECTOR vector vector_if_negative(vector a, vector b)
{
	return _mm256_blendv_epi8(a, b, _mm256_srai_epi32(a, 31));
}

VECTOR vector vector_if_zero(vector a, vector x, vector b)
{
	return _mm256_blendv_epi8(x, b, _mm256_cmpeq_epi32(a, _mm256_setzero_si256()));
}

VECTOR vector vector_count_zeros(vector counts, vector x, int64_t n)
{
	(void)n;
	return _mm256_sub_epi32(counts, _mm256_cmpeq_epi32(x, _mm256_setzero_si256()));
}

VECTOR vector vector_quotient8(vector a, vector b, double scale)
{
	__m256 end = _mm256_set1_ps(1 << 20);
	__m256 x = _mm256_div_ps(_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b));
	x = _mm256_mul_ps(x, _mm256_set1_ps((float)scale));
	x = _mm256_max_ps(_mm256_min_ps(x, end), _mm256_sub_ps(_mm256_setzero_ps(), end));
	__m256 floor = _mm256_floor_ps(x);
	vector inexact = _mm256_castps_si256(_mm256_cmp_ps(x, floor, _CMP_NEQ_UQ));
	return _mm256_or_si256(_mm256_cvttps_epi32(floor), _mm256_srli_epi32(inexact, 31));
}

VECTOR __m128i vector_quotient_half(__m128i a, __m128i b, double scale)
{
	__m256d end = _mm256_set1_pd(1 << 20);
	__m256d x = _mm256_div_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(b));
	x = _mm256_mul_pd(x, _mm256_set1_pd(scale));
	x = _mm256_max_pd(_mm256_min_pd(x, end), _mm256_sub_pd(_mm256_setzero_pd(), end));
	__m256d floor = _mm256_floor_pd(x);
	/* As numbers: 0 or 1. */
	__m256d inexact = _mm256_and_pd(_mm256_cmp_pd(x, floor, _CMP_NEQ_UQ), _mm256_set1_pd(1));
	return _mm_or_si128(_mm256_cvttpd_epi32(floor), _mm256_cvttpd_epi32(inexact));
}

VECTOR vector vector_quotient16(vector a, vector b, double scale)
{
	__m128i low = vector_quotient_half(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b), scale);
	__m128i high = vector_quotient_half(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1), scale);
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

VECTOR __m128i vector_of_doubles(__m256d x, enum npumem_rounding rounding)
{
	enum { EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
	__m256d end = _mm256_set1_pd(1 << 20), sign = _mm256_set1_pd(-0.0), half = _mm256_set1_pd(0.5);
	x = _mm256_max_pd(_mm256_min_pd(x, end), _mm256_xor_pd(end, sign));
	if (rounding == NPUMEM_CONVERGENT)
		x = _mm256_round_pd(x, EVEN);
	else if (rounding == NPUMEM_UP)
		x = _mm256_floor_pd(_mm256_add_pd(x, half));
	else
		x = _mm256_add_pd(x, _mm256_or_pd(half, _mm256_and_pd(x, sign)));
	return _mm256_cvttpd_epi32(x);
}

VECTOR __m128i vector_scaled_half(__m128i a, __m128i b, double scale, enum npumem_rounding rounding)
{
	__m256d x = _mm256_mul_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(b));
	return vector_of_doubles(_mm256_mul_pd(x, _mm256_set1_pd(scale)), rounding);
}

VECTOR vector vector_of_reals(const float *from, float scale, enum npumem_rounding rounding, int64_t n)
{
	(void)n;
	__m256 end = _mm256_set1_ps(1 << 20), zero = _mm256_setzero_ps(), half = _mm256_set1_ps(0.5F);
	__m256 x = _mm256_mul_ps(_mm256_loadu_ps(from), _mm256_set1_ps(scale));
	x = _mm256_max_ps(_mm256_min_ps(x, end), _mm256_sub_ps(zero, end));
	if (rounding == NPUMEM_CONVERGENT)
		return _mm256_cvttps_epi32(_mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
	__m256 floor = _mm256_floor_ps(x), rest = _mm256_sub_ps(x, floor);
	__m256 up = _mm256_cmp_ps(rest, half, _CMP_GE_OQ);
	if (rounding == NPUMEM_NEAREST)
		up = _mm256_and_ps(up, _mm256_or_ps(_mm256_cmp_ps(rest, half, _CMP_GT_OQ),
						    _mm256_cmp_ps(x, zero, _CMP_GE_OQ)));
	return _mm256_sub_epi32(_mm256_cvttps_epi32(floor), _mm256_castps_si256(up));
}

VECTOR void vector_store_reals(float *to, vector x, float scale, int64_t n)
{
	(void)n;
	_mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtepi32_ps(x), _mm256_set1_ps(scale)));
}

VECTOR vector vector_scaled(vector a, vector b, double scale, enum npumem_rounding rounding)
{
	__m128i low = vector_scaled_half(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b), scale, rounding);
	__m128i high = vector_scaled_half(_mm256_extracti128_si256(a, 1), _mm256_extracti128_si256(b, 1), scale,
					  rounding);
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

struct vector_scales {
	double coarse, beside, alone;
};

VECTOR __m128i vector_scaled_sum_half(__m128i coarse, __m128i fine, const struct vector_scales *scales,
				      enum npumem_rounding rounding)
{
	__m256d x = _mm256_cvtepi32_pd(coarse), none = _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ);
	__m256d scale = _mm256_blendv_pd(_mm256_set1_pd(scales->beside), _mm256_set1_pd(scales->alone), none);
	x = _mm256_mul_pd(x, _mm256_set1_pd(scales->coarse));
	return vector_of_doubles(_mm256_fmadd_pd(_mm256_cvtepi32_pd(fine), scale, x), rounding);
}

VECTOR vector vector_scaled_sum(vector coarse, vector fine, const struct vector_scales *scales,
				enum npumem_rounding rounding)
{
	__m128i low = vector_scaled_sum_half(_mm256_castsi256_si128(coarse), _mm256_castsi256_si128(fine), scales,
					     rounding);
	__m128i high = vector_scaled_sum_half(_mm256_extracti128_si256(coarse, 1),
					      _mm256_extracti128_si256(fine, 1), scales, rounding);
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

VECTOR __m128i vector_scaled_mean_half(__m128i a, int32_t n, double scale, enum npumem_rounding rounding)
{
	__m256d x = _mm256_mul_pd(_mm256_cvtepi32_pd(a), _mm256_set1_pd(scale));
	return vector_of_doubles(_mm256_div_pd(x, _mm256_set1_pd(n)), rounding);
}

VECTOR vector vector_scaled_mean(vector a, int32_t n, double scale, enum npumem_rounding rounding)
{
	__m128i low = vector_scaled_mean_half(_mm256_castsi256_si128(a), n, scale, rounding);
	__m128i high = vector_scaled_mean_half(_mm256_extracti128_si256(a, 1), n, scale, rounding);
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

VECTOR vector vector_gather_pairs(const int16_t *words, vector at)
{
	return _mm256_i32gather_epi32((const int *)(const void *)words, at, sizeof(*words));
}

enum { VECTOR_TABLE = 384 };
struct vector_table {
	const int16_t *words;
};

VECTOR struct vector_table vector_table_load(const int16_t *words)
{
	return (struct vector_table){words};
}

VECTOR vector vector_table_pairs(const struct vector_table *table, vector at)
{
	return vector_gather_pairs(table->words, at);
}

VECTOR vector vector_count_outside(vector counts, vector x, vector low, vector high, int64_t n)
{
	(void)n;
	vector outside = _mm256_or_si256(_mm256_cmpgt_epi32(low, x), _mm256_cmpgt_epi32(x, high));
	return _mm256_sub_epi32(counts, outside);
}

VECTOR int64_t vector_total(vector counts)
{
	__m128i x = _mm_add_epi32(_mm256_castsi256_si128(counts), _mm256_extracti128_si256(counts, 1));
	x = _mm_add_epi32(x, _mm_shuffle_epi32(x, 0x4e));
	return _mm_cvtsi128_si32(_mm_add_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}

#endif
