/* The mean of n values from their exact sum. Two ways:
 *
 * truncated: sum * m / 2^s with m the 15 leading bits of 1/n, as the reference has it; at most one unit from the
 * exact mean.
 * exact: sum / n, rounded once. */
#ifndef DEVICE_MEAN_H
#define DEVICE_MEAN_H

#include "daemon/device/fixed/divide.h"

struct mean {
	int64_t n;
	int64_t multiplier, shift; /* 1/n is about multiplier / 2^shift */
};

#define MEAN_MAX (INT64_C(1) << 30)

/* 1 <= n <= MEAN_MAX. */
static inline void mean_init(struct mean *mean, int64_t n)
{
	uint64_t reciprocal = ((uint64_t)1 << 31) / (uint64_t)n;
	int64_t places = 0;
	while (reciprocal >> 31 == 0) {
		reciprocal <<= 1;
		places++;
	}
	*mean = (struct mean){n, (int64_t)(reciprocal >> 17), 14 + places};
}

/* The mean of a sum with `frac_bits`, in the format of out_frac_bits and saturated to [low, high]; |sum| <= 2^39,
 * as an accumulator holds it. */
static inline int64_t mean_truncated(const struct mean *mean, int64_t sum, int64_t frac_bits,
				     int64_t out_frac_bits, enum npumem_rounding rounding, int64_t low,
				     int64_t high, int64_t *saturated)
{
	return round_clamp(sum * mean->multiplier, mean->shift + frac_bits - out_frac_bits, rounding, low, high,
			   saturated);
}

static inline int64_t mean_exact(const struct mean *mean, int64_t sum, int64_t frac_bits, int64_t out_frac_bits,
				 enum npumem_rounding rounding, int64_t low, int64_t high, int64_t *saturated)
{
	return divide_clamp(sum, mean->n, out_frac_bits - frac_bits, rounding, low, high, saturated);
}

#endif
