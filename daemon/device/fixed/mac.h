/* Multiply-accumulate over rows: the inner loop of kernels with weights that are not matrix products.
 *
 * Sums are exact here, wider than the hardware's accumulator where need be; accumulator.h folds them into its
 * width at the end, which gives the same bits because two's complement wraps are associative. */
#ifndef DEVICE_MAC_H
#define DEVICE_MAC_H

#include <stdint.h>

/* Which rows and sums: row elements of 1 or 2 bytes, sums of 4 or 8 bytes (4 only with elements and scalars that
 * fit 1 byte). */
struct mac {
	unsigned row_bytes, sum_bytes;
};

/* sums[j] += scalar * row[j * step] for 0 <= j < n. `scalar` is within the 16-bit container, or with sums of 4
 * bytes within the 8-bit one; the caller's bound on the number of products keeps the sums exact. */
void mac_row(const struct mac *mac, void *sums, const void *row, int64_t step, int32_t scalar, int64_t n);

#endif
