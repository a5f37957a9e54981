/* The scalar row, which defines what the others compute. */
#include "daemon/device/fixed/rows/taps.h"

#include "daemon/device/implementations.h"

enum { BLOCK = 64 };

/* A pair at a time, so that compilers make vectors of the loops over sums. */
static void add_pairs(const struct taps *taps, const int16_t *in, const int32_t *weights, int64_t n, int32_t *sums)
{
	for (int64_t k = 0; k < taps->n; k++) {
		const int16_t *pair = in + taps->offsets[k];
		int32_t first = (int16_t)weights[k], second = weights[k] >> 16;
		if (taps->stride == 1)
			for (int64_t j = 0; j < n; j++)
				sums[j] += pair[j] * first + pair[j + 1] * second;
		else
			for (int64_t j = 0; j < n; j++)
				sums[j] += pair[j * taps->stride] * first + pair[j * taps->stride + 1] * second;
	}
}

static void scalar_block(const struct taps *taps, const int16_t *in, int64_t n, int32_t *sums)
{
	int32_t low[BLOCK], high[BLOCK];
	for (int64_t j = 0; j < n; j++) {
		low[j] = taps->low_bias;
		high[j] = taps->high_bias;
	}
	add_pairs(taps, in, taps->low, n, low);
	if (taps->high) {
		add_pairs(taps, in, taps->high, n, high);
		for (int64_t j = 0; j < n; j++)
			low[j] = (high[j] + (low[j] >> 8)) * (1 << (8 - TAPS_DROP)) | ((low[j] & 0xff) != 0);
	}
	for (int64_t j = 0; j < n; j++)
		sums[j] = low[j];
}

void taps__scalar(const struct taps *taps, int64_t n, int32_t *sums)
{
	for (int64_t j = 0; j < n; j += BLOCK)
		scalar_block(taps, taps->in + j * taps->stride, n - j < BLOCK ? n - j : BLOCK, sums + j);
}

void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums)
{
	implementations[taps->stride > TAPS_STRIDE_MAX ? ISA_SCALAR : isa].taps(taps, n, sums);
}
