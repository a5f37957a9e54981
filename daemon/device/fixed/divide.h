/* Quotients, rounded once and saturated once: as round.h, for divisors that are no power of two. */
#ifndef DEVICE_DIVIDE_H
#define DEVICE_DIVIDE_H

#include "daemon/device/fixed/round.h"

/* Past this, in units of the result, it saturates whatever follows: containers have at most 32 bits. */
#define DIVIDE_BEYOND (INT64_C(1) << 40)

/* a * 2^shift / b for |a| < 2^60 and 0 < b < 2^60, in [low, high] as for round_clamp. Long division to one bit
 * more than the result has; what is left below that is one mark, since it only matters whether it is zero. */
static inline int64_t divide_clamp(int64_t a, int64_t b, int64_t shift, enum npumem_rounding rounding, int64_t low,
				   int64_t high, int64_t *saturated)
{
	int64_t floor = a / b, rest = a % b;
	if (rest < 0) {
		rest += b;
		floor--;
	}
	int64_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
	do {
		rest *= 2;
		floor = floor * 2 + (rest >= b);
		rest -= rest >= b ? b : 0;
	} while (left-- > 0 && floor < DIVIDE_BEYOND && floor > -DIVIDE_BEYOND);
	return round_clamp(floor * 2 + (rest != 0), right + 2, rounding, low, high, saturated);
}

#endif
