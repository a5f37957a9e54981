/* As many rows as a 16-byte piece has elements, a cache line of each: the same steps as those of 16-byte squares,
 * in the four quarters of a vector side by side. */
#include <immintrin.h>
#include <stdbool.h>

#include "daemon/device/fixed/rows/transpose.h"
#include "daemon/device/implementations.h"

enum { QUARTERS = 4, QUARTER = 16 };

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

static inline __attribute__((always_inline)) __m512i interleave(__m512i a, __m512i b, const unsigned bytes,
								const bool high)
{
	if (bytes == 1)
		return high ? _mm512_unpackhi_epi8(a, b) : _mm512_unpacklo_epi8(a, b);
	if (bytes == 2)
		return high ? _mm512_unpackhi_epi16(a, b) : _mm512_unpacklo_epi16(a, b);
	return high ? _mm512_unpackhi_epi32(a, b) : _mm512_unpacklo_epi32(a, b);
}

/* n is 16 / bytes. */
static inline __attribute__((always_inline)) void line(const unsigned bytes, const int n, const uint8_t *from,
						       int64_t from_step, uint8_t *to, int64_t to_step)
{
	__m512i a[QUARTER], b[QUARTER];
	UNROLL
	for (int i = 0; i < n; i++)
		a[i] = _mm512_loadu_si512(from + i * from_step);
	UNROLL
	for (int half = n; half > 1; half /= 2) {
		UNROLL
		for (int i = 0; i < n / 2; i++) {
			b[2 * i] = interleave(a[i], a[i + n / 2], bytes, false);
			b[2 * i + 1] = interleave(a[i], a[i + n / 2], bytes, true);
		}
		UNROLL
		for (int i = 0; i < n; i++)
			a[i] = b[i];
	}
	UNROLL
	for (int i = 0; i < n; i++) {
		_mm_storeu_si128((void *)(to + i * to_step), _mm512_castsi512_si128(a[i]));
		_mm_storeu_si128((void *)(to + (n + i) * to_step), _mm512_extracti32x4_epi32(a[i], 1));
		_mm_storeu_si128((void *)(to + (2 * n + i) * to_step), _mm512_extracti32x4_epi32(a[i], 2));
		_mm_storeu_si128((void *)(to + (3 * n + i) * to_step), _mm512_extracti32x4_epi32(a[i], 3));
	}
}

void transpose_line__avx512vnni(unsigned bytes, const uint8_t *from, int64_t from_step, uint8_t *to,
				int64_t to_step)
{
	if (bytes == 1)
		line(1, 16, from, from_step, to, to_step);
	else if (bytes == 2)
		line(2, 8, from, from_step, to, to_step);
	else
		line(4, 4, from, from_step, to, to_step);
}
