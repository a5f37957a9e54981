/* 256 bytes are four vectors, of which a permutation reads two; the input's sign chooses which. */
#include "daemon/device/fixed/rows/vectors/vector.h"

#include "daemon/device/fixed/rows/lut_bytes.h"

struct table {
	__m512i quarters[4];
};

VECTOR struct table table_load(const uint8_t *bytes)
{
	return (struct table){{_mm512_loadu_si512(bytes), _mm512_loadu_si512(bytes + 64),
			       _mm512_loadu_si512(bytes + 128), _mm512_loadu_si512(bytes + 192)}};
}

VECTOR __m512i table_read(const struct table *table, __m512i index)
{
	__m512i low = _mm512_permutex2var_epi8(table->quarters[0], index, table->quarters[1]);
	__m512i high = _mm512_permutex2var_epi8(table->quarters[2], index, table->quarters[3]);
	return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(index), high);
}

void lut_bytes__avx512vnni(const struct lut_bytes *bytes, const uint8_t *in, int64_t n, uint8_t *out,
			   int64_t *saturated)
{
	const struct table results = table_load(bytes->results), clamped = table_load(bytes->saturated);
	int64_t count = 0;
	for (int64_t i = 0; i < n; i += VECTOR_BYTES) {
		__mmask64 lanes = vector_byte_lanes(n - i);
		__m512i index = _mm512_maskz_loadu_epi8(lanes, in + i);
		_mm512_mask_storeu_epi8(out + i, lanes, table_read(&results, index));
		count += __builtin_popcountll(_mm512_movepi8_mask(table_read(&clamped, index)) & lanes);
	}
	*saturated += count;
}
