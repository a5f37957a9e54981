/* The functions of vector.h for AVX2 that are longer than one expression (vector.def). Only vector.h includes it. */
#ifndef DEVICE_VECTOR_AVX2_H
#define DEVICE_VECTOR_AVX2_H

enum { VECTOR_EVEN = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

/* 256 bytes are sixteen tables of sixteen, each read by the index's low four bits; its high four choose one. */
struct vector_bytes_table {
	const uint8_t *bytes;
};

VECTOR struct vector_bytes_table vector_bytes_table_load(const uint8_t *bytes)
{
	return (struct vector_bytes_table){bytes};
}

/* The sum of what the sixteen shuffles give: all but one of them are 0. */
VECTOR vector vector_bytes_table_read(const struct vector_bytes_table *table, vector index)
{
	enum { TABLES = 16, TABLE_BYTES = 16 };
	const vector none = _mm256_set1_epi8(0x70), step = _mm256_set1_epi8(TABLE_BYTES);
	vector result = _mm256_setzero_si256();
	for (int i = 0; i < TABLES; i++) {
		vector bytes = _mm256_broadcastsi128_si256(
			_mm_loadu_si128((const void *)(table->bytes + i * TABLE_BYTES)));
		/* From 16 on bit 7 is set after a saturating sum, so that the shuffle gives 0. */
		result |= (vector)_mm256_shuffle_epi8(bytes, _mm256_adds_epu8(index, none));
		index = _mm256_sub_epi8(index, step);
	}
	return result;
}

VECTOR int32_t vector_sum(vector x)
{
	__m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
	return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

VECTOR vector vector_sum_each(const vector *x)
{
	vector a = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
	vector b = _mm256_hadd_epi32(_mm256_hadd_epi32(x[4], x[5]), _mm256_hadd_epi32(x[6], x[7]));
	return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20), _mm256_permute2x128_si256(a, b, 0x31));
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

VECTOR int64_t vector_pair_outside(struct vector_pair x, int32_t low, int32_t high)
{
	vector_words from = (int16_t)low - (vector_words){0}, to = (int16_t)high - (vector_words){0};
	vector_words a = (vector_words)x.low, b = (vector_words)x.high;
	vector bytes = _mm256_packs_epi16((a < from) | (a > to), (b < from) | (b > to));
	return __builtin_popcount((unsigned)_mm256_movemask_epi8(bytes));
}

VECTOR vector vector_same_raw(vector a, vector b, unsigned bytes)
{
	return bytes == 1 ? _mm256_cmpeq_epi8(a, b) : _mm256_cmpeq_epi16(a, b);
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

/* The low 16 bits of each element: the pack saturates, so what is above them has to be the sign. */
VECTOR __m128i vector_narrowed(vector x)
{
	vector whole = _mm256_srai_epi32(_mm256_slli_epi32(x, 16), 16);
	return _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
}

VECTOR __m128i vector_narrowed8(vector x)
{
	__m128i low = _mm_and_si128(vector_narrowed(x), _mm_set1_epi16(0xff));
	return _mm_packus_epi16(low, low);
}

#endif
