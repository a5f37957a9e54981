/* The loop that compilers turn into multiply-add instructions on pairs of 16-bit elements. */
#include "daemon/device/fixed/dot4.h"

#include "daemon/device/fixed/multiversion.h"

/* Products that 32 bits hold: 256 of 16 by 8 bits, signed or (low bytes) not. */
enum { DOT4_PRODUCTS = 256 };

MULTIVERSION_PART void dot4_part(const int16_t *restrict left, const int16_t *restrict right, int64_t length,
				 int64_t n, int32_t *restrict sums)
{
	const int16_t *restrict right1 = right + length, *restrict right2 = right1 + length;
	const int16_t *restrict right3 = right2 + length;
	int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
	for (int64_t k = 0; k < n; k++) {
		sum0 += left[k] * right[k];
		sum1 += left[k] * right1[k];
		sum2 += left[k] * right2[k];
		sum3 += left[k] * right3[k];
	}
	sums[0] = sum0;
	sums[1] = sum1;
	sums[2] = sum2;
	sums[3] = sum3;
}

MULTIVERSION_PART void wide(const struct dot4 *dot4, const int16_t *left, const int16_t *right, int64_t length,
			    int64_t part, int64_t *totals)
{
	int32_t sums[DOT4_WIDTH];
	for (int64_t k = 0; k < part; k += DOT4_PRODUCTS) {
		int64_t n = part - k < DOT4_PRODUCTS ? part - k : DOT4_PRODUCTS;
		dot4_part(left + k, right + k, length, n, sums);
		for (int r = 0; r < DOT4_WIDTH; r++)
			totals[r] += sums[r];
		if (!dot4->split)
			continue;
		dot4_part(left + k, right + DOT4_WIDTH * length + k, length, n, sums);
		for (int r = 0; r < DOT4_WIDTH; r++)
			totals[r] += sums[r] * INT64_C(256);
	}
}

MULTIVERSION_PART void rows(const struct dot4 *dot4, const int16_t *left, int64_t n, const int16_t *right,
			    int64_t length, int64_t part, void *sums)
{
	int32_t *sums32 = sums;
	int64_t *sums64 = sums;
	for (int64_t i = 0; i < n; i++) {
		if (dot4->sum_bytes == 4) {
			int32_t four[DOT4_WIDTH];
			dot4_part(left + i * length, right, length, part, four);
			for (int r = 0; r < DOT4_WIDTH; r++)
				sums32[r * n + i] += four[r];
		} else {
			int64_t four[DOT4_WIDTH] = {0};
			wide(dot4, left + i * length, right, length, part, four);
			for (int r = 0; r < DOT4_WIDTH; r++)
				sums64[r * n + i] += four[r];
		}
	}
}
MULTIVERSION(void, dot4_rows,
	     (const struct dot4 *dot4, const int16_t *left, int64_t n, const int16_t *right, int64_t length,
	      int64_t part, void *sums),
	     rows, (dot4, left, n, right, length, part, sums))
