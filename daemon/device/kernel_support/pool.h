/* Pooling: windows of kernel=, stride= and padding= over each feature by itself.
 * Roles in [N,C,H,W] and out [N,C,Ho,Wo], of one type (fx8 or fx16); their formats are the kernel's business. */
#ifndef DEVICE_POOL_H
#define DEVICE_POOL_H

#include "daemon/device/operations/kernel.h"
#include "daemon/device/kernel_support/window.h"

enum { POOL_IN, POOL_OUT };

/* Types, parameters and shapes: 0 or INVALID. Every window then meets the input. */
int pool_check(const struct kernel_call *call, struct npumem_error *error);
/* The windows of a call that passed. */
void pool_window(const struct kernel_call *call, struct window *window);

/* What was done for the row of outputs that comes next. */
struct pool_row {
	const struct kernel_call *call;
	int64_t outputs; /* of a row */
	int64_t work;	 /* for a row: columns to take in, taps of windows */
	int64_t done, looked;
};
void pool_row_init(struct pool_row *row, const struct kernel_call *call, const struct window *window);
/* Tells `steps` more of the work; false where the rest is no longer wanted. */
bool pool_row_work(struct pool_row *row, int64_t steps);
/* The end of the piece of work that begins at `at`, of what ends at `end`. */
static inline int64_t pool_row_piece(const struct pool_row *row, int64_t at, int64_t end)
{
	int64_t piece = kernel_piece(row->call);
	return end - at < piece ? end : at + piece;
}
/* Tells that the row is there. */
bool pool_row_end(struct pool_row *row);

#endif
