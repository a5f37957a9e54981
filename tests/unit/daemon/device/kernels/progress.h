/* Progress and cancellation of a kernel, for the tests of those that may take long. */
#ifndef TESTS_DEVICE_KERNELS_PROGRESS_H
#define TESTS_DEVICE_KERNELS_PROGRESS_H

#include "tests/unit/daemon/device/kernels/calls.h"

/* A whole run tells every element of out (whose role is `out`), a cancelled one ends at its first step, which is
 * no more than `step` elements and not all. */
static inline void progress_check(struct calls *c, unsigned out, int64_t step)
{
	const struct kernel_operand *operand = &c->operands[out][0];
	int64_t elements = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype));
	struct kernel_progress progress = {.piece = 1};
	c->call.progress = &progress;
	calls_run(c);
	ck_assert_int_eq(progress.done, elements * KERNEL_PARTS);
	progress.done = 0;
	progress.cancelled = true;
	calls_run(c);
	ck_assert_int_le(progress.done, step * KERNEL_PARTS);
	ck_assert_int_lt(progress.done, elements * KERNEL_PARTS);
	c->call.progress = NULL;
}

#endif
