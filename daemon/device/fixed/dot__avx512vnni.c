/* Dot products by vpmaddwd, bytes being widened to words: sums of two products, which fit 32 bits but for one,
 * twice 2^30, that comes out as -2^31 and nothing else does. One less than each is in range, and is what is added
 * in 64. */
#include "daemon/device/fixed/dot.h"

#include "daemon/device/fixed/rows/vectors/vector.h"

enum { WORDS = 32 };

VECTOR __m512i words_at(const void *from, unsigned bytes, int64_t i, int64_t n)
{
	__mmask32 lanes = n - i >= WORDS ? ~UINT32_C(0) : (UINT32_C(1) << (n - i)) - 1;
	if (bytes == 2)
		return _mm512_maskz_loadu_epi16(lanes, (const int16_t *)from + i);
	return _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(lanes, (const int8_t *)from + i));
}

VECTOR int64_t sum(const void *a, const unsigned a_bytes, const void *b, const unsigned b_bytes, int64_t n)
{
	__m512i low = _mm512_setzero_si512(), high = low, one = _mm512_set1_epi32(1);
	int64_t i = 0;
	for (; i < n; i += WORDS) {
		__m512i pairs = _mm512_madd_epi16(words_at(a, a_bytes, i, n), words_at(b, b_bytes, i, n));
		pairs = _mm512_sub_epi32(pairs, one);
		low = _mm512_add_epi64(low, _mm512_cvtepi32_epi64(_mm512_castsi512_si256(pairs)));
		high = _mm512_add_epi64(high, _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(pairs, 1)));
	}
	return _mm512_reduce_add_epi64(_mm512_add_epi64(low, high)) + i / 2;
}

int64_t dot__avx512vnni(const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, int64_t n)
{
	if (a_bytes == 1)
		return sum(a, 1, b, 1, n);
	return b_bytes == 1 ? sum(a, 2, b, 1, n) : sum(a, 2, b, 2, n);
}
