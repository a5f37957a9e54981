/* Rounding shifts and saturation of one value: the definition that every other file of fixed/ repeats for rows.
 *
 * Exact for every 64-bit value and every shift count; none of the register-width side effects of a DSP. Only
 * fixed/ rounds, shifts and saturates. Relies on >> of a negative value being arithmetic, as gcc and clang define
 * it. */
#ifndef DEVICE_ROUND_H
#define DEVICE_ROUND_H

#include <npumem/types.h>

/* A function with the rounding mode as a constant, so that its loops have one of them. */
#define ROUND_BY_MODE(rounding, function, ...)                                                                    \
	((rounding) == NPUMEM_CONVERGENT ? function(NPUMEM_CONVERGENT, __VA_ARGS__)                               \
	 : (rounding) == NPUMEM_UP	 ? function(NPUMEM_UP, __VA_ARGS__)                                       \
					 : function(NPUMEM_NEAREST, __VA_ARGS__))

/* x / 2^shift for shift > 0, rounded. floor + 1 where the first bit that falls off is set and something says up:
 * a bit below it (no tie), or the mode's rule for a tie. A form without branches, for the loops over rows. */
static inline int64_t round_right(int64_t x, int64_t shift, enum npumem_rounding rounding)
{
	if (shift > 64) /* |x| / 2^65 is below one half */
		return 0;
	int64_t floor = shift > 63 ? x >> 63 : x >> shift;
	uint64_t half = (uint64_t)1 << (shift - 1);
	int64_t first = ((uint64_t)x & half) != 0;
	int64_t below = ((uint64_t)x & (half - 1)) != 0;
	int64_t tie = rounding == NPUMEM_UP ? 1 : rounding == NPUMEM_NEAREST ? x >= 0 : floor & 1;
	return floor + (first & (below | tie));
}

/* The same in 32 bits, for 0 < shift < 32, so that rows of int32_t keep their lanes: what falls off carries into
 * the floor once half a unit is added to it, or, where a tie goes down, a little less. */
static inline int32_t round_right32(int32_t x, unsigned shift, enum npumem_rounding rounding)
{
	int32_t floor = x >> shift;
	uint32_t half = (uint32_t)1 << (shift - 1), falls_off = (uint32_t)x & (2 * half - 1);
	uint32_t tie_up = rounding == NPUMEM_UP ? 1 : rounding == NPUMEM_NEAREST ? x >= 0 : (uint32_t)floor & 1;
	return floor + (int32_t)((falls_off + (half - 1 + tie_up)) >> shift);
}

/* x * 2^shift for shift >= 0 where that lies in [low, high] (low <= 0 <= high), else one past the end that it is
 * beyond: low and high fit 33 bits, so that the mark for "too large" exists and survives until the clamp. */
static inline int64_t round_left(int64_t x, int64_t shift, int64_t low, int64_t high)
{
	unsigned count = shift > 62 ? 62 : (unsigned)shift; /* 2^62 is past every end already */
	if (x > high >> count)
		return high + 1;
	if (x < -(-low >> count))
		return low - 1;
	return (int64_t)((uint64_t)x << count);
}

/* Into [low, high]; counts into *saturated where that changed x. */
static inline int64_t round_saturate(int64_t x, int64_t low, int64_t high, int64_t *saturated)
{
	int64_t y = x < low ? low : x > high ? high : x;
	*saturated += y != x;
	return y;
}

/* x / 2^shift (a negative shift multiplies) rounded once, then saturated once to [low, high], as round_left. */
static inline int64_t round_clamp(int64_t x, int64_t shift, enum npumem_rounding rounding, int64_t low,
				  int64_t high, int64_t *saturated)
{
	int64_t y = shift > 0 ? round_right(x, shift, rounding) : round_left(x, -shift, low, high);
	return round_saturate(y, low, high, saturated);
}

#endif
