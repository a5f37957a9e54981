/* A result of several sums of products, each in an accumulator of its own and rounded by itself to the result's
 * format ("rnn_dense"): the rounded sums are added exactly, and saturated once. The bias goes into the first. */
#ifndef DEVICE_MULTI_SUM_H
#define DEVICE_MULTI_SUM_H

#include "daemon/device/fixed/requantize.h"

enum { MULTI_SUM_MAX = 20 };

struct multi_sum {
	unsigned n, bits;	       /* of each accumulator: 32 or 40 */
	unsigned order[MULTI_SUM_MAX]; /* those to shift left first, by the most first */
	int64_t shifts[MULTI_SUM_MAX];
	int64_t bias_shift;
	enum npumem_rounding rounding;
	int64_t low, high;
};

/* shifts[i] (n of them, 1 to MULTI_SUM_MAX) takes sum i to the result: > 0 to the right, with rounding. data_bytes
 * of an element of the data: 1 or 2. `result` has 8 or 16 bits; its own shift and limits are not looked at. */
void multi_sum_init(struct multi_sum *multi, unsigned data_bytes, const int64_t *shifts, unsigned n,
		    int64_t bias_shift, const struct requantize *result);

/* The result of the exact sums[i * step] (each |x| <= 2^62). Adds one to *wrapped for each of them that is out of
 * its accumulator's range, and to *saturated where the end result was saturated. */
int64_t multi_sum_join(const struct multi_sum *multi, const int64_t *sums, int64_t step, int64_t bias,
		       int64_t *saturated, int64_t *wrapped);

#endif
