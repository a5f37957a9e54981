/* The dot product of two rows of 8- or 16-bit elements: exact, wider than the hardware's accumulator, into whose
 * width accumulator.h folds it afterwards. rows/gemv.h is for many of them. */
#ifndef DEVICE_DOT_H
#define DEVICE_DOT_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* Sum of a[i] * b[i] for 0 <= i < n, n <= ACCUMULATOR_PRODUCTS_MAX. Bytes of an element of a and of b: 1 and 1, 2
 * and 2, or 2 and 1. */
int64_t dot(enum isa isa, const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, int64_t n);

#endif
