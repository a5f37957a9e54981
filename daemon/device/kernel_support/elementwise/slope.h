/* ReLUs with a slope: what is negative is multiplied by one, exactly, and rounded once; the rest stays as it is.
 * Roles in, slope, out, of one type (fx8 or fx16); in and out have one format, the slope any. A slope may be above
 * one, or negative. */
#ifndef DEVICE_SLOPE_H
#define DEVICE_SLOPE_H

#include "daemon/device/operations/kernel.h"

enum { SLOPE_IN, SLOPE_SLOPE, SLOPE_OUT };

/* `slope` is the shape that the slope must have. 0 or INVALID. */
int slope_check(const struct kernel_call *call, const struct npumem_dims *slope, struct npumem_error *error);
/* The slope has at most one extent above 1, that of `in` along the same dimension. */
int64_t slope_steps(const struct kernel_call *call);
void slope_run(struct kernel_call *call);

#endif
