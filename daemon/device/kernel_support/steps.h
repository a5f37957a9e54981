/* Estimates of what a run costs, in op_cost's unit (half a nanosecond), from which kernels make their steps(). The
 * loop itself runs what is short, so an estimate may be too high, and too low by a few times at most. What is
 * copied to and from local memory is not in it: op_cost adds that.
 *
 * In floating point, as a client may choose extents whose products leave 64 bits. */
#ifndef DEVICE_STEPS_H
#define DEVICE_STEPS_H

#include "daemon/device/kernel_support/operands.h"

enum {
	STEPS_RUN = 400,     /* the run itself: what is chosen before the first element */
	STEPS_ROW = 80,	     /* one call of a loop over a row, however short the row is */
	STEPS_DIVISION = 60, /* one result that is divided, or made by itself for another reason */
};

static inline int64_t steps_whole(double steps)
{
	return steps < (double)INT32_MAX - STEPS_RUN ? (int64_t)steps + STEPS_RUN : INT32_MAX;
}

static inline double steps_elements(const struct kernel_operand *operand)
{
	return (double)operands_elements(operand);
}

/* Whether the kernel may reach the operand's features where they lie. */
static inline bool steps_has_features(const struct kernel_operand *operand)
{
	return operand->shape.h * operand->shape.w * (int64_t)npumem_dtype_bytes(operand->dtype) >=
	       KERNEL_FEATURE_BYTES_MIN;
}

/* What an element takes: more where no vectors may do it, as there are none, or as a shift may leave 32 bits. */
double steps_per_element(const struct kernel_call *call);

/* Kernels that go over their elements by walk.h: of few instructions for an element, and of a table or a division.
 */
int64_t steps_elementwise(const struct kernel_call *call);
int64_t steps_elementwise_slow(const struct kernel_call *call);

#endif
