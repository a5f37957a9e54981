/* The multiply-accumulate loops, in forms that compilers vectorize: contiguous rows, four at a time, 32-bit sums.
 */
#include "daemon/device/fixed/mac.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/device/fixed/multiversion.h"

enum {
	MAC_BLOCK = 1024,   /* sums that stay in the first cache while all rows pass */
	MAC_PRODUCTS = 256, /* what 32 bits hold of products of 16 by 8 bits, signed or (low bytes) not */
};

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

MULTIVERSION void mac_row(const struct mac *mac, void *sums, const void *row, int64_t step, int32_t scalar,
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

/* Four rows in one pass over the sums. */
#define MAC_FOUR(name, row_type)                                                                                  \
	MULTIVERSION_PART void name(int32_t *restrict sums, const row_type *restrict a,                           \
				    const row_type *restrict b, const row_type *restrict c,                       \
				    const row_type *restrict d, const int16_t *scalars, int64_t n)                \
	{                                                                                                         \
		int16_t by_a = scalars[0], by_b = scalars[1], by_c = scalars[2], by_d = scalars[3];               \
		for (int64_t j = 0; j < n; j++)                                                                   \
			sums[j] += (int16_t)a[j] * by_a + (int16_t)b[j] * by_b + (int16_t)c[j] * by_c +           \
				   (int16_t)d[j] * by_d;                                                          \
	}
MAC_FOUR(four_8_32, int8_t)
MAC_FOUR(four_16_32, int16_t)

#define MAC_ROWS(name, row_type, four_rows, one_row)                                                              \
	MULTIVERSION_PART void name(int32_t *sums, const row_type *rows, const int64_t *offsets,                  \
				    const int16_t *scalars, int64_t n_rows, int64_t n)                            \
	{                                                                                                         \
		int64_t r = 0;                                                                                    \
		for (; r + 4 <= n_rows; r += 4)                                                                   \
			four_rows(sums, rows + offsets[r], rows + offsets[r + 1], rows + offsets[r + 2],          \
				  rows + offsets[r + 3], scalars + r, n);                                         \
		for (; r < n_rows; r++)                                                                           \
			one_row(sums, rows + offsets[r], 1, scalars[r], n);                                       \
	}
MAC_ROWS(rows_8_32, int8_t, four_8_32, row_8_32)
MAC_ROWS(rows_16_32, int16_t, four_16_32, row_16_32)

MULTIVERSION static void narrow(const struct mac *mac, int32_t *sums, const void *rows, int64_t first,
				const int64_t *offsets, const int16_t *scalars, int64_t n_rows, int64_t n)
{
	if (mac->row_bytes == 1)
		rows_8_32(sums, (const int8_t *)rows + first, offsets, scalars, n_rows, n);
	else
		rows_16_32(sums, (const int16_t *)rows + first, offsets, scalars, n_rows, n);
}

/* Adds up to MAC_PRODUCTS rows to one block of 64-bit sums, by way of 32-bit ones. Where neither side is known to
 * fit 8 bits, the scalars' low and high bytes have a turn each. */
static void wide(const struct mac *mac, int64_t *sums, const void *rows, int64_t first, const int64_t *offsets,
		 const int16_t *scalars, int64_t n_rows, int64_t n)
{
	int16_t low[MAC_PRODUCTS], high[MAC_PRODUCTS];
	bool split = false;
	for (int64_t r = 0; r < n_rows; r++)
		split |= mac->row_bytes == 2 && scalars[r] != (int8_t)scalars[r];
	for (int64_t r = 0; r < n_rows && split; r++) {
		low[r] = scalars[r] & 0xff;
		high[r] = (int16_t)((scalars[r] - low[r]) / 256);
	}
	int32_t part[MAC_BLOCK];
	memset(part, 0, (size_t)n * sizeof(*part));
	narrow(mac, part, rows, first, offsets, split ? low : scalars, n_rows, n);
	for (int64_t j = 0; j < n; j++)
		sums[j] += part[j];
	if (!split)
		return;
	memset(part, 0, (size_t)n * sizeof(*part));
	narrow(mac, part, rows, first, offsets, high, n_rows, n);
	for (int64_t j = 0; j < n; j++)
		sums[j] += part[j] * INT64_C(256);
}

void mac_rows(const struct mac *mac, void *sums, const void *rows, const int64_t *offsets, const int16_t *scalars,
	      int64_t n_rows, int64_t n)
{
	for (int64_t j = 0; j < n; j += MAC_BLOCK) {
		int64_t count = n - j < MAC_BLOCK ? n - j : MAC_BLOCK;
		if (mac->sum_bytes == 4) {
			narrow(mac, (int32_t *)sums + j, rows, j, offsets, scalars, n_rows, count);
			continue;
		}
		for (int64_t r = 0; r < n_rows; r += MAC_PRODUCTS)
			wide(mac, (int64_t *)sums + j, rows, j, offsets + r, scalars + r,
			     n_rows - r < MAC_PRODUCTS ? n_rows - r : MAC_PRODUCTS, count);
	}
}
