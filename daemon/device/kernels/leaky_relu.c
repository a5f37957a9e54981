/* Leaky ReLU: one slope for all that is negative. */
#include "daemon/device/kernel_support/elementwise/slope.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return slope_check(call, &(struct npumem_dims){1, 1, 1, 1}, error);
}

const struct kernel kernel_leaky_relu = {
	.number = NPUMEM_KERNEL_LEAKY_RELU,
	.in_place = true,
	.walks = true,
	.by_feature = 1 << SLOPE_IN | 1 << SLOPE_OUT,
	.check = check,
	.steps = slope_steps,
	.run = slope_run,
};
