/* The scalar row, which defines what the others compute. */
#include "daemon/device/fixed/rows/taps.h"

static int32_t sum_pairs(const struct taps *taps, const int16_t *in, const int32_t *weights, int32_t sum)
{
	for (int64_t k = 0; k < taps->n; k++) {
		const int16_t *pair = in + taps->offsets[k];
		sum += pair[0] * (int16_t)weights[k];
		sum += pair[1] * (weights[k] >> 16);
	}
	return sum;
}

static void scalar(const struct taps *taps, int64_t n, int32_t *sums)
{
	for (int64_t j = 0; j < n; j++) {
		const int16_t *in = taps->in + j * taps->stride;
		int32_t low = sum_pairs(taps, in, taps->low, taps->low_bias);
		if (taps->high) {
			int32_t high = sum_pairs(taps, in, taps->high, taps->high_bias) + (low >> 8);
			low = high * (1 << (8 - TAPS_DROP)) | ((low & 0xff) != 0);
		}
		sums[j] = low;
	}
}

#ifdef __x86_64__
void taps_row__avx2(const struct taps *taps, int64_t n, int32_t *sums);
void taps_row__avx512vnni(const struct taps *taps, int64_t n, int32_t *sums);

void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums)
{
	if (taps->stride > TAPS_STRIDE_MAX || isa < ISA_AVX2)
		scalar(taps, n, sums);
	else if (isa >= ISA_AVX512VNNI)
		taps_row__avx512vnni(taps, n, sums);
	else
		taps_row__avx2(taps, n, sums);
}
#else
void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums)
{
	(void)isa;
	scalar(taps, n, sums);
}
#endif
