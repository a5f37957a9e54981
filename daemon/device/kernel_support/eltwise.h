/* Element-wise kernels of two inputs: in1, in2 and out of one type (fx8 or fx16) and one shape, or one of the
 * inputs a scalar [1,1,1,1]. A kernel walks over blocks of widened pairs, turns each pair into a value, and stores
 * the values through its requantize:
 *
 *	for (eltwise_begin(&e, call); eltwise_next(&e);) {
 *		for (int64_t i = 0; i < e.n; i++)
 *			e.values[i] = e.in1[i] … e.in2[i];
 *		eltwise_store(&e, &requantize);
 *	} */
#ifndef DEVICE_ELTWISE_H
#define DEVICE_ELTWISE_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/operations/kernel.h"

enum { ELTWISE_IN1, ELTWISE_IN2, ELTWISE_OUT };
enum { ELTWISE_BLOCK = 256 };

/* Types and shapes; frac_bits are the kernel's business. 0 or INVALID. */
int eltwise_check(const struct kernel_call *call, struct npumem_error *error);

struct eltwise {
	struct kernel_call *call;
	int64_t first, n, end; /* the block is [first, first + n) of `end` elements */
	int32_t in1[ELTWISE_BLOCK], in2[ELTWISE_BLOCK];
	int32_t values[ELTWISE_BLOCK];
};

/* Clears the call's counts. */
void eltwise_begin(struct eltwise *e, struct kernel_call *call);
/* Loads the next block; false when there is none, or the rest is no longer wanted. */
bool eltwise_next(struct eltwise *e);
/* Writes the block's values (used up) to out and counts what saturated. */
void eltwise_store(struct eltwise *e, const struct requantize *requantize);

#endif
