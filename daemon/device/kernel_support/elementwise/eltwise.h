/* Element-wise kernels of two inputs: in1, in2 and out of one type (fx8 or fx16) and one shape, or one of the
 * inputs goes with all of the other: its N and C are the other's or 1, its H and W the other's or both 1. A kernel
 * says what becomes of a row:
 *
 *	for (eltwise_begin(&e, call); eltwise_next(&e);)
 *		row_product(&e.row, e.walk.n, &call->counts.saturated); */
#ifndef DEVICE_ELTWISE_H
#define DEVICE_ELTWISE_H

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/walk.h"

enum { ELTWISE_IN1, ELTWISE_IN2, ELTWISE_OUT };
enum { ELTWISE_BY_FEATURE = 1 << ELTWISE_IN1 | 1 << ELTWISE_IN2 | 1 << ELTWISE_OUT };

/* The role's shape goes with `whole`. 0 or INVALID. */
int eltwise_check_spread(const struct kernel_call *call, unsigned role, const struct npumem_dims *whole,
			 const char *why, struct npumem_error *error);
/* Types and shapes; frac_bits are the kernel's business. 0 or INVALID. */
int eltwise_check(const struct kernel_call *call, struct npumem_error *error);

struct eltwise {
	struct kernel_call *call;
	struct walk walk;
	struct row row;
	bool spread; /* an input that is no scalar goes with all of the other */
	bool flat;   /* then, and features have one element: all operands are dense, and C is the row */
};

/* Sets what the row reads and how its values, of `frac_bits`, become out's; row_init() is the kernel's. */
void eltwise_init(struct eltwise *e, struct kernel_call *call, int64_t frac_bits);
/* Clears the call's counts. */
void eltwise_begin(struct eltwise *e);
/* The next piece; false when there is none, or the rest is no longer wanted. */
bool eltwise_next(struct eltwise *e);

/* The run of in1 + in2 and of in1 - in2, as `sign` is 1 or -1, in any formats: both are brought to the format with
 * more frac_bits, added exactly, and rounded to out's once. */
void eltwise_sum_run(struct kernel_call *call, int sign);

#endif
