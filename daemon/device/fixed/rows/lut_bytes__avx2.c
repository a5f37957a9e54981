/* 256 bytes are sixteen tables of sixteen, each read by the index's low four bits; its high four choose one. */
#include <immintrin.h>

#include "daemon/device/fixed/rows/lut_bytes.h"
#include "daemon/device/implementations.h"

enum { TABLES = 16, TABLE_BYTES = 16, VECTOR_BYTES = 32 };

/* The sum of what the sixteen shuffles give: all but one of them are 0. */
static inline __m256i read_table(const uint8_t *bytes, __m256i index)
{
	const __m256i none = _mm256_set1_epi8(0x70), step = _mm256_set1_epi8(TABLE_BYTES);
	__m256i result = _mm256_setzero_si256();
	for (int i = 0; i < TABLES; i++) {
		__m256i table =
			_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(bytes + i * TABLE_BYTES)));
		/* From 16 on bit 7 is set after a saturating sum, so that the shuffle gives 0. */
		result = _mm256_or_si256(result, _mm256_shuffle_epi8(table, _mm256_adds_epu8(index, none)));
		index = _mm256_sub_epi8(index, step);
	}
	return result;
}

void lut_bytes__avx2(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out, int64_t *saturated)
{
	int64_t count = 0, i = 0;
	bool clamps = false;
	for (int k = 0; k < TABLES * TABLE_BYTES; k++)
		clamps = clamps || bytes->saturated[k];
	for (; i + VECTOR_BYTES <= n; i += VECTOR_BYTES) {
		__m256i index = _mm256_loadu_si256((const __m256i *)(in + i));
		_mm256_storeu_si256((__m256i *)(out + i), read_table(bytes->results, index));
		if (clamps)
			count += __builtin_popcount(
				(unsigned)_mm256_movemask_epi8(read_table(bytes->saturated, index)));
	}
	for (; i < n; i++) {
		uint8_t x = in[i];
		count += bytes->saturated[x] & 1;
		out[i] = bytes->results[x];
	}
	*saturated += count;
}
