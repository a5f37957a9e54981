/* The multiply-accumulate loops, in forms that compilers vectorize. */
#include "daemon/device/fixed/mac.h"

#include "daemon/device/fixed/multiversion.h"

#define MAC_ROW(name, sum_type, row_type)                                                                         \
	MULTIVERSION_PART void name(sum_type *restrict sums, const row_type *restrict row, int64_t step,          \
				    int16_t scalar, int64_t n)                                                    \
	{                                                                                                         \
		if (step == 1)                                                                                    \
			for (int64_t j = 0; j < n; j++)                                                           \
				sums[j] += (int16_t)row[j] * scalar;                                              \
		else                                                                                              \
			for (int64_t j = 0; j < n; j++)                                                           \
				sums[j] += (int16_t)row[j * step] * scalar;                                       \
	}
MAC_ROW(row_8_32, int32_t, int8_t)
MAC_ROW(row_16_32, int32_t, int16_t)
MAC_ROW(row_8_64, int64_t, int8_t)
MAC_ROW(row_16_64, int64_t, int16_t)

MULTIVERSION_PART void any_row(const struct mac *mac, void *sums, const void *row, int64_t step, int32_t scalar,
			       int64_t n)
{
	if (mac->sum_bytes == 4 && mac->row_bytes == 1)
		row_8_32(sums, row, step, (int16_t)scalar, n);
	else if (mac->sum_bytes == 4)
		row_16_32(sums, row, step, (int16_t)scalar, n);
	else if (mac->row_bytes == 1)
		row_8_64(sums, row, step, (int16_t)scalar, n);
	else
		row_16_64(sums, row, step, (int16_t)scalar, n);
}
MULTIVERSION(void, mac_row,
	     (const struct mac *mac, void *sums, const void *row, int64_t step, int32_t scalar, int64_t n),
	     any_row, (mac, sums, row, step, scalar, n))
