/* AVX2's part of vector.h, which includes it. Elements beyond n are as many as a whole vector has. */
#ifndef DEVICE_VECTOR_AVX2_H
#define DEVICE_VECTOR_AVX2_H

VECTOR vector vector_select(vector mask, vector a, vector b)
{
	return _mm256_blendv_epi8(b, a, mask);
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

VECTOR void vector_store32(void *to, vector x, int64_t n)
{
	(void)n;
	_mm256_storeu_si256(to, x);
}

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

VECTOR vector vector_words_if_same(vector a, vector b, vector x)
{
	return _mm256_and_si256(_mm256_cmpeq_epi16(a, b), x);
}

VECTOR int64_t vector_count_other_raw(vector a, vector b, unsigned bytes, int64_t n)
{
	(void)n;
	vector same = bytes == 1 ? _mm256_cmpeq_epi8(a, b) : _mm256_cmpeq_epi16(a, b);
	return (VECTOR_BYTES - __builtin_popcount((unsigned)_mm256_movemask_epi8(same))) / (int)bytes;
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
VECTOR __m128i vector_narrowed(vector x)
{
	vector whole = _mm256_srai_epi32(_mm256_slli_epi32(x, 16), 16);
	return _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
}

VECTOR void vector_store8(void *to, vector x, int64_t n)
{
	(void)n;
	__m128i low = _mm_and_si128(vector_narrowed(x), _mm_set1_epi16(0xff));
	_mm_storel_epi64(to, _mm_packus_epi16(low, low));
}

VECTOR void vector_store16(void *to, vector x, int64_t n)
{
	(void)n;
	_mm_storeu_si128(to, vector_narrowed(x));
}

VECTOR vector vector_left(vector a, vector count)
{
	return _mm256_sllv_epi32(a, count);
}

VECTOR vector vector_right(vector a, vector count)
{
	return _mm256_srav_epi32(a, count);
}

VECTOR vector vector_gather_pairs(const int16_t *words, vector at)
{
	return _mm256_i32gather_epi32((const int *)(const void *)words, at, sizeof(*words));
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

VECTOR vector_half vector_low_half(vector x)
{
	return (vector_half)_mm256_castsi256_si128(x);
}

VECTOR vector_half vector_high_half(vector x)
{
	return (vector_half)_mm256_extracti128_si256(x, 1);
}

VECTOR vector vector_of_halves(vector_half low, vector_half high)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

enum { VECTOR_EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

VECTOR vector_doubles vector_half_doubles(vector_half x)
{
	return _mm256_cvtepi32_pd((__m128i)x);
}

VECTOR vector_half vector_doubles_floor(vector_doubles x)
{
	return (vector_half)_mm256_cvttpd_epi32(_mm256_floor_pd(x));
}

VECTOR vector_half vector_doubles_ceil(vector_doubles x)
{
	return (vector_half)_mm256_cvttpd_epi32(_mm256_ceil_pd(x));
}

VECTOR vector_half vector_doubles_even(vector_doubles x)
{
	return (vector_half)_mm256_cvttpd_epi32(_mm256_round_pd(x, VECTOR_EVEN));
}

VECTOR vector_doubles vector_doubles_if_zero(vector_doubles x, vector_doubles a, vector_doubles b)
{
	return _mm256_blendv_pd(b, a, _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_EQ_OQ));
}

VECTOR vector vector_reals_floor(vector_reals x)
{
	return _mm256_cvttps_epi32(_mm256_floor_ps(x));
}

VECTOR vector vector_reals_ceil(vector_reals x)
{
	return _mm256_cvttps_epi32(_mm256_ceil_ps(x));
}

VECTOR vector vector_reals_even(vector_reals x)
{
	return _mm256_cvttps_epi32(_mm256_round_ps(x, VECTOR_EVEN));
}

#endif
