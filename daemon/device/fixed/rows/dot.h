/* The dot product of two rows of 16-bit elements: exact, wider than the hardware's accumulator. gemv.h is for many
 * of them. */
#ifndef DEVICE_DOT_H
#define DEVICE_DOT_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* Sum of a[i] * b[i] for 0 <= i < n, n <= ACCUMULATOR_PRODUCTS_MAX. */
int64_t dot(enum isa isa, const int16_t *a, const int16_t *b, int64_t n);

#endif
