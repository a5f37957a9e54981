/* The scalar row, which defines what the others compute. */
#include "daemon/device/fixed/rows/taps.h"

static void scalar(const struct taps *taps, int64_t first, int64_t n, int32_t *sums)
{
	for (int64_t j = first; j < n; j++) {
		sums[j] = 0;
		for (int64_t k = 0; k < taps->n; k++) {
			int64_t at = j * taps->stride + taps->offsets[k];
			int32_t x = taps->bytes == 1 ? ((const int8_t *)taps->in)[at]
						     : ((const int16_t *)taps->in)[at];
			sums[j] += x * taps->weights[k];
		}
	}
}

#ifdef __x86_64__
int64_t taps_row__avx2(const struct taps *taps, int64_t n, int32_t *sums);
int64_t taps_row__avx512vnni(const struct taps *taps, int64_t n, int32_t *sums);

void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums)
{
	int64_t done = 0;
	if (isa >= ISA_AVX512VNNI)
		done = taps_row__avx512vnni(taps, n, sums);
	else if (isa == ISA_AVX2)
		done = taps_row__avx2(taps, n, sums);
	scalar(taps, done, n, sums);
}
#else
void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums)
{
	(void)isa;
	scalar(taps, 0, n, sums);
}
#endif
