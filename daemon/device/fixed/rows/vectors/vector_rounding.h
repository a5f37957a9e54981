/* From values of 32 bits to a container: a template over the vectors that were included before it.
 *
 * Rounding is one form for all modes, for values that requantize_fits32(): (value + (value >> tie_shift &
 * tie_mask) + add)
 * >> shift, where the term in the middle decides a tie. A shift to the left first brings what is past every
 * container to where it stays past it. */
#ifndef DEVICE_VECTOR_ROUNDING_H
#define DEVICE_VECTOR_ROUNDING_H

#include "daemon/device/fixed/requantize.h"

/* Rows that round by doubles have larger shifts to the right, and do not use them. */
enum { ROUNDING_LEFT_MAX = 30, ROUNDING_RIGHT_MAX = 31 };

struct rounding {
	bool left, right; /* neither: values are results */
	unsigned bytes;
	vector tie_shift, tie_mask, add, shift;
	vector left_shift, left_low, left_high;
	vector low, high, limit_low, limit_high;
};

VECTOR struct rounding rounding_of(const struct requantize *to, unsigned drop)
{
	int64_t shift = to->shift > 0 ? to->shift - drop : 0, left = to->shift < 0 ? -to->shift : 0;
	left = left < ROUNDING_LEFT_MAX ? left : ROUNDING_LEFT_MAX;
	shift = shift < ROUNDING_RIGHT_MAX ? shift : ROUNDING_RIGHT_MAX;
	bool even = shift > 0 && to->rounding == NPUMEM_CONVERGENT;
	bool away = shift > 0 && to->rounding == NPUMEM_NEAREST;
	int32_t half = shift > 0 ? (int32_t)1 << (shift - 1) : 0, past = (int32_t)1 << (ROUNDING_LEFT_MAX - left);
	return (struct rounding){
		.left = left > 0,
		.right = shift > 0,
		.bytes = to->bytes,
		.tie_shift = vector_set(even ? (int32_t)shift : 31),
		.tie_mask = vector_set(even   ? 1
				       : away ? -1
					      : 0),
		.add = vector_set(half - even),
		.shift = vector_set((int32_t)shift),
		.left_shift = vector_set((int32_t)left),
		.left_low = vector_set(-past),
		.left_high = vector_set(past),
		.low = vector_set((int32_t)to->low),
		.high = vector_set((int32_t)to->high),
		.limit_low = vector_set((int32_t)to->limit_low),
		.limit_high = vector_set((int32_t)to->limit_high),
	};
}

VECTOR vector rounded_right(const struct rounding *r, vector x)
{
	vector tie = vector_and(vector_right(x, r->tie_shift), r->tie_mask);
	return vector_right(vector_add(vector_add(x, r->add), tie), r->shift);
}

VECTOR vector rounded(const struct rounding *r, vector x)
{
	if (r->left)
		return vector_left(vector_min(vector_max(x, r->left_low), r->left_high), r->left_shift);
	return r->right ? rounded_right(r, x) : x;
}

VECTOR vector limited(const struct rounding *r, vector x)
{
	return vector_min(vector_max(x, r->limit_low), r->limit_high);
}

#endif
