/* A result of two sums of products in one accumulator, which changes its format between them ("rnn cells" of
 * mli 1.1): the bias and the first sum, a shift from the first input's format to the second's, the second sum, one
 * rounding, one saturation. The shift between them rounds in the accumulator of 32 bits; the one of 40 drops the
 * bits. */
#ifndef DEVICE_RESCALED_SUM_H
#define DEVICE_RESCALED_SUM_H

#include "daemon/device/fixed/requantize.h"

struct rescaled_sum {
	unsigned bits; /* of the accumulator: 32 or 40 */
	int64_t bias_shift;
	int64_t between; /* the shift between the sums; > 0: to the right */
	struct requantize result;
};

/* data_bytes of an element of the data: 1 or 2. `result` is copied; its limits are not looked at. */
void rescaled_sum_init(struct rescaled_sum *rescaled, unsigned data_bytes, int64_t bias_shift, int64_t between,
		       const struct requantize *result);

/* The result of the exact sums (each |x| <= 2^62). Adds one to *wrapped where the accumulator left its range, once
 * or twice, and to *saturated where the end result was saturated. */
int64_t rescaled_sum_join(const struct rescaled_sum *rescaled, int64_t first, int64_t second, int64_t bias,
			  int64_t *saturated, int64_t *wrapped);

#endif
