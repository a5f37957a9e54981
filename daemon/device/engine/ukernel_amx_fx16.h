/* 16-bit terms as bytes on AMX's tiles: a group of steps is 64 of them, the low bytes' 16 steps and the high
 * ones'. */
#ifndef DEVICE_UKERNEL_AMX_FX16_H
#define DEVICE_UKERNEL_AMX_FX16_H

#include "daemon/device/engine/amx.h"
#include "daemon/device/engine/ukernel_avx512_fx16.h"

enum {
	UKERNEL_AMX_DEPTH = 2 * AMX_ROW_BYTES / UKERNEL_STEP_BYTES,
	UKERNEL_AMX_HIGH = UKERNEL_AMX_DEPTH / 2, /* steps */
	UKERNEL_AMX_PITCH = 2 * AMX_ROW_BYTES,	  /* of a row's weights of a group */
	UKERNEL_AMX_TILE = AMX_ROWS * AMX_ROWS,
};

/* Elements of two lines side by side, 16 of each. */
UKERNEL_INLINE __m512i ukernel_amx_pairs(const void *const *lines, int64_t i, __mmask16 mask)
{
	__m256i a = _mm256_maskz_loadu_epi16(mask, (const int16_t *)lines[0] + i);
	__m256i b = _mm256_maskz_loadu_epi16(mask, (const int16_t *)lines[1] + i);
	return _mm512_or_si512(_mm512_cvtepu16_epi32(a), _mm512_slli_epi32(_mm512_cvtepu16_epi32(b), 16));
}

/* 4 x 16 elements to 16 steps of their low bytes, and as many of the others. */
static inline void ukernel_amx_pack16(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off,
				      uint8_t *to)
{
	/* Bytes 0 and 2 of each pair and, as 64 and 66, of the one in the other register. */
	const __m512i first = _mm512_set1_epi32(0x42400200);
	const __m512i pair = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	const __m512i low = _mm512_add_epi8(first, _mm512_mullo_epi32(pair, _mm512_set1_epi32(0x04040404)));
	const __m512i high = _mm512_add_epi8(low, _mm512_set1_epi8(1));
	(void)bytes;
	for (int64_t i = 0; i < n; i += UKERNEL_VECTOR, to += UKERNEL_VECTOR * UKERNEL_STEP_BYTES) {
		__mmask16 mask = (__mmask16)ukernel_low_bits(n - i);
		__m512i a = ukernel_amx_pairs(lines, i, mask), b = ukernel_amx_pairs(lines + 2, i, mask);
		_mm512_storeu_si512(to, _mm512_permutex2var_epi8(a, low, b));
		_mm512_storeu_si512(to + high_off, _mm512_permutex2var_epi8(a, high, b));
	}
}

/* 8 sums of 32 bits. */
UKERNEL_INLINE __m512i ukernel_widened(const int32_t *sums)
{
	return _mm512_cvtepi32_epi64(_mm256_load_si256((const __m256i *)sums));
}

#endif
