/* Arithmetic on sizes that a caller chose: nothing negative, and what does not fit is INT64_MAX.
 * A size that cannot be represented is then refused by the same comparison as one that is merely too large. */
#ifndef FORMULAS_SIZES_H
#define FORMULAS_SIZES_H

#include <stdint.h>

static inline int64_t sizes_mul(int64_t a, int64_t b)
{
	int64_t product;
	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t sizes_add(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static inline int64_t sizes_ceil_div(int64_t a, int64_t unit)
{
	return a / unit + (a % unit != 0);
}

static inline int64_t sizes_round_up(int64_t a, int64_t unit)
{
	return sizes_mul(sizes_ceil_div(a, unit), unit);
}

#endif
