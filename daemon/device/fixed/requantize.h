/* From exact intermediate values to a tensor's container, a row at a time: one rounding shift, one saturation,
 * then the limits of a fused ReLU. Rows of 32 and of 64 bits; the same answers as round_clamp, value by value. */
#ifndef DEVICE_REQUANTIZE_H
#define DEVICE_REQUANTIZE_H

#include <npumem/types.h>

struct requantize {
	int64_t shift; /* > 0: to the right, with rounding; < 0: to the left */
	enum npumem_rounding rounding;
	unsigned bytes;		       /* of an element of the result */
	int64_t low, high;	       /* the container */
	int64_t limit_low, limit_high; /* within the container; what they change does not count as saturated */
};

/* Results of an integer or fixed point `dtype`, without limits. */
void requantize_init(struct requantize *requantize, int dtype, int64_t shift, enum npumem_rounding rounding);

/* Whether 32 bits hold values of this magnitude with half a unit: vector_rounding.h is for those. */
static inline bool requantize_fits32(int64_t value, int64_t shift)
{
	return shift <= 30 && value <= INT32_MAX - (shift > 0 ? (int64_t)1 << (shift - 1) : 0);
}

/* Writes n results to `out` (an array of the container's type) and returns how many of them saturation changed.
 * The values are used up: what they hold afterwards means nothing. */
int64_t requantize_row64(const struct requantize *requantize, int64_t *values, int64_t n, void *out);
/* Likewise; the container has 8 or 16 bits. */
int64_t requantize_row32(const struct requantize *requantize, int32_t *values, int64_t n, void *out);

#endif
