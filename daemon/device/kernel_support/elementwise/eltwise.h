/* Element-wise kernels of two inputs: in1, in2 and out of one type (fx8 or fx16) and one shape, or one of the
 * inputs a scalar [1,1,1,1]. A kernel says what becomes of a row:
 *
 *	for (eltwise_begin(&e, call); eltwise_next(&e);)
 *		row_product(&e.row, e.walk.n, &call->counts.saturated); */
#ifndef DEVICE_ELTWISE_H
#define DEVICE_ELTWISE_H

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/walk.h"

enum { ELTWISE_IN1, ELTWISE_IN2, ELTWISE_OUT };
enum { ELTWISE_BY_FEATURE = 1 << ELTWISE_IN1 | 1 << ELTWISE_IN2 | 1 << ELTWISE_OUT };

/* Types and shapes; frac_bits are the kernel's business. 0 or INVALID. */
int eltwise_check(const struct kernel_call *call, struct npumem_error *error);

struct eltwise {
	struct kernel_call *call;
	struct walk walk;
	struct row row;
};

/* Sets what the row reads and how its values, of `frac_bits`, become out's; row_init() is the kernel's. */
void eltwise_init(struct eltwise *e, struct kernel_call *call, int64_t frac_bits);
/* Clears the call's counts. */
void eltwise_begin(struct eltwise *e);
/* The next piece; false when there is none, or the rest is no longer wanted. */
bool eltwise_next(struct eltwise *e);

#endif
