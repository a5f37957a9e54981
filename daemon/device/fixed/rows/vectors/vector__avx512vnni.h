/* AVX-512's part of vector.h, which includes it. */
#ifndef DEVICE_VECTOR_AVX512VNNI_H
#define DEVICE_VECTOR_AVX512VNNI_H

VECTOR __mmask16 vector_lanes(int64_t n)
{
	return n >= VECTOR_N ? 0xffff : (__mmask16)((1u << n) - 1);
}

VECTOR vector vector_select(vector mask, vector a, vector b)
{
	return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
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

/* By a count for each element; one past 31 gives 0, or the sign. */
VECTOR vector vector_left(vector a, vector count)
{
	return _mm512_sllv_epi32(a, count);
}

VECTOR vector vector_right(vector a, vector count)
{
	return _mm512_srav_epi32(a, count);
}

/* Adds one to the counts where x, of n elements, is outside [low, high]. */
VECTOR vector vector_count_outside(vector counts, vector x, vector low, vector high, int64_t n)
{
	__mmask16 outside = _mm512_mask_cmpgt_epu32_mask(vector_lanes(n), _mm512_sub_epi32(x, low),
							 _mm512_sub_epi32(high, low));
	return _mm512_mask_add_epi32(counts, outside, counts, _mm512_set1_epi32(1));
}

/* Words `at` and at + 1, in the low and the high half of each element. */
VECTOR vector vector_gather_pairs(const int16_t *words, vector at)
{
	return _mm512_i32gather_epi32(at, words, sizeof(*words));
}

/* Up to 384 words, in registers. */
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

/* x where a is b, else zero. */
VECTOR vector vector_words_if_same(vector a, vector b, vector x)
{
	return _mm512_maskz_mov_epi16(_mm512_cmpeq_epi16_mask(a, b), x);
}

/* How many of the elements of n bytes differ. */
VECTOR int64_t vector_count_other_raw(vector a, vector b, unsigned bytes, int64_t n)
{
	if (bytes == 1)
		return __builtin_popcountll(_mm512_mask_cmpneq_epi8_mask(vector_byte_lanes(n), a, b));
	return __builtin_popcount(_mm512_mask_cmpneq_epi16_mask(vector_word_lanes(n / 2), a, b));
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

VECTOR vector_half vector_low_half(vector x)
{
	return (vector_half)_mm512_castsi512_si256(x);
}

VECTOR vector_half vector_high_half(vector x)
{
	return (vector_half)_mm512_extracti64x4_epi64(x, 1);
}

VECTOR vector vector_of_halves(vector_half low, vector_half high)
{
	return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

enum {
	VECTOR_DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
	VECTOR_UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC,
	VECTOR_EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC,
};

/* gcc 12 makes two conversions and an insertion of __builtin_convertvector. */
VECTOR vector_doubles vector_half_doubles(vector_half x)
{
	return _mm512_cvtepi32_pd(x);
}

VECTOR vector_half vector_doubles_floor(vector_doubles x)
{
	return (vector_half)_mm512_cvt_roundpd_epi32(x, VECTOR_DOWN);
}

VECTOR vector_half vector_doubles_ceil(vector_doubles x)
{
	return (vector_half)_mm512_cvt_roundpd_epi32(x, VECTOR_UP);
}

VECTOR vector_half vector_doubles_even(vector_doubles x)
{
	return (vector_half)_mm512_cvt_roundpd_epi32(x, VECTOR_EVEN);
}

VECTOR vector_doubles vector_doubles_if_zero(vector_doubles x, vector_doubles a, vector_doubles b)
{
	return _mm512_mask_blend_pd(_mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_EQ_OQ), b, a);
}

VECTOR vector vector_reals_floor(vector_reals x)
{
	return _mm512_cvt_roundps_epi32(x, VECTOR_DOWN);
}

VECTOR vector vector_reals_ceil(vector_reals x)
{
	return _mm512_cvt_roundps_epi32(x, VECTOR_UP);
}

VECTOR vector vector_reals_even(vector_reals x)
{
	return _mm512_cvt_roundps_epi32(x, VECTOR_EVEN);
}

#endif
