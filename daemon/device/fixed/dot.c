/* Products of 8-bit weights are summed in 32 bits, in blocks that cannot leave them, so that compilers vectorize
 * the loop; products of 16 bits by 16 need 64 from the second one on. */
#include "daemon/device/fixed/dot.h"

#include <assert.h>

#include "daemon/device/implementations.h"

enum { DOT_BLOCK_8_8 = 1 << 16, DOT_BLOCK_16_8 = 1 << 8 }; /* 2^14 and 2^22 a product: 2^30 a block */

#define DOT_BLOCKS(name, a_type, b_type, block)                                                                   \
	static int64_t name(const a_type *a, const b_type *b, int64_t n)                                          \
	{                                                                                                         \
		int64_t sum = 0;                                                                                  \
		for (int64_t first = 0; first < n; first += (block)) {                                            \
			int64_t end = n - first < (block) ? n : first + (block);                                  \
			int32_t part = 0;                                                                         \
			for (int64_t i = first; i < end; i++)                                                     \
				part += (int32_t)a[i] * b[i];                                                     \
			sum += part;                                                                              \
		}                                                                                                 \
		return sum;                                                                                       \
	}
DOT_BLOCKS(dot_8_8, int8_t, int8_t, DOT_BLOCK_8_8)
DOT_BLOCKS(dot_16_8, int16_t, int8_t, DOT_BLOCK_16_8)

static int64_t dot_16_16(const int16_t *a, const int16_t *b, int64_t n)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += (int32_t)a[i] * b[i];
	return sum;
}

int64_t dot__scalar(const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, int64_t n)
{
	if (a_bytes == 1)
		return dot_8_8(a, b, n);
	return b_bytes == 1 ? dot_16_8(a, b, n) : dot_16_16(a, b, n);
}

int64_t dot(enum isa isa, const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, int64_t n)
{
	assert(b_bytes <= a_bytes);
	return implementations[isa].dot(a, a_bytes, b, b_bytes, n);
}
