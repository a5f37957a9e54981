/* Masks of lanes, and the functions of vector.h for AVX-512 that are longer than one expression (vector.def). Only
 * vector.h includes it. */
#ifndef DEVICE_VECTOR_AVX512VNNI_H
#define DEVICE_VECTOR_AVX512VNNI_H

enum {
	VECTOR_DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC,
	VECTOR_UP = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC,
	VECTOR_EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC,
};

/* The first n; none where n is negative. */
VECTOR __mmask16 vector_lanes(int64_t n)
{
	return n >= VECTOR_N ? 0xffff : (__mmask16)((1u << n) - 1);
}

VECTOR __mmask32 vector_word_lanes(int64_t n)
{
	return n >= VECTOR_WORDS ? ~UINT32_C(0) : n <= 0 ? 0 : (UINT32_C(1) << n) - 1;
}

VECTOR __mmask64 vector_byte_lanes(int64_t n)
{
	return n >= VECTOR_BYTES ? ~UINT64_C(0) : (UINT64_C(1) << n) - 1;
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

/* 256 bytes are four vectors, of which a permutation reads two; the index's sign chooses which. */
struct vector_bytes_table {
	__m512i quarters[4];
};

VECTOR struct vector_bytes_table vector_bytes_table_load(const uint8_t *bytes)
{
	return (struct vector_bytes_table){{_mm512_loadu_si512(bytes), _mm512_loadu_si512(bytes + 64),
					    _mm512_loadu_si512(bytes + 128), _mm512_loadu_si512(bytes + 192)}};
}

VECTOR vector vector_bytes_table_read(const struct vector_bytes_table *table, vector index)
{
	__m512i low = _mm512_permutex2var_epi8(table->quarters[0], index, table->quarters[1]);
	__m512i high = _mm512_permutex2var_epi8(table->quarters[2], index, table->quarters[3]);
	return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

/* Each step adds the halves of two vectors, and packs both sums into one vector. */
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

VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	vector from = _mm512_set1_epi16((short)low), width = _mm512_set1_epi16((short)(high - low));
	__mmask32 a = _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(x.low, from), width);
	__mmask32 b = _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(x.high, from), width);
	return __builtin_popcountll((uint64_t)b << 32 | a);
}

/* The index of each is that of the element before plus two. */
VECTOR vector vector_even_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1   ? _mm512_permutex2var_epi8(a, vector_index() * 0x08080808 + 0x06040200, b)
	       : bytes == 2 ? _mm512_permutex2var_epi16(a, vector_index() * 0x00040004 + 0x00020000, b)
			    : _mm512_permutex2var_epi32(a, vector_index() * 2, b);
}

#endif
