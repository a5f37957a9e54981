/* The accumulator of the MAC kernels: 32 bits for fx8, 40 bits for fx16 and for fx16 data with fx8 weights (the
 * arithmetic chapter's "Influence of Accumulator Bit Depth"). The bias is shifted left into its format and added
 * exactly; nothing rounds or saturates inside; past its range it wraps, and that is counted; the end result is
 * rounded once, then saturated once.
 *
 * A row of sums of products comes in exact, in int32_t where the number of products proves that this holds every
 * sum, else in int64_t. */
#ifndef DEVICE_ACCUMULATOR_H
#define DEVICE_ACCUMULATOR_H

#include "daemon/device/fixed/requantize.h"

/* Products that one sum may have: 2^32 * 2^30 is well inside int64_t. */
#define ACCUMULATOR_PRODUCTS_MAX (INT64_C(1) << 32)
/* bias_shift is at most the frac_bits of two operands. */
enum { ACCUMULATOR_BIAS_SHIFT_MAX = 2 * NPUMEM_FRAC_BITS_MAX };

struct accumulator {
	unsigned bits;	    /* 32 or 40 */
	unsigned sum_bytes; /* of an element of a row of sums: 4 or 8 */
	bool cannot_wrap;   /* no operands of these types and counts reach the ends, bias included */
	int64_t bias_shift;
	struct requantize result;
};

/* data_bytes and weight_bytes: 1 and 1, 2 and 2, or 2 and 1. The bias has the width of the weights; where there is
 * none, bias_shift is 0. `result` is copied. */
void accumulator_init(struct accumulator *accumulator, unsigned data_bytes, unsigned weight_bytes,
		      int64_t n_products, int64_t bias_shift, const struct requantize *result);

/* Turns n sums (of sum_bytes each; used up) into n results at `out`. bias[j * bias_step] belongs to sum j; NULL:
 * none. Adds to *saturated and *wrapped. */
void accumulator_finish(const struct accumulator *accumulator, void *sums, int64_t n, const int32_t *bias,
			int64_t bias_step, void *out, int64_t *saturated, int64_t *wrapped);

/* The accumulator of `bits` (32 or 40) that holds sum + bias * 2^shift, |sum| <= 2^62, |bias| <= 2^15, 0 <= shift
 * <= ACCUMULATOR_BIAS_SHIFT_MAX. Counts into *wrapped where the exact total is out of its range. */
int64_t accumulator_total(int64_t sum, int64_t bias, int64_t shift, unsigned bits, int64_t *wrapped);

#endif
