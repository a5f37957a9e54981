/* Grouped 2D convolution: output channel o sees the input channels of group o / (O / groups). */
#include "daemon/device/kernel_support/windows/convolve.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/window.h"

static int64_t groups(const struct kernel_call *call)
{
	return kernel_param(call, NPUMEM_PARAM_GROUPS, 0, 1);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_param(call, NPUMEM_PARAM_GROUPS, "", groups(call), 1, WINDOW_LIMIT, error);
	return status ? status : convolve_check(call, groups(call), error);
}

static void plan(struct kernel_call *call)
{
	convolve_plan(call, groups(call));
}

const struct kernel kernel_group_conv2d = {
	.number = NPUMEM_KERNEL_GROUP_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.plan = plan,
	.scratch_bytes = convolve_scratch_bytes,
	.pack_bytes = convolve_pack_bytes,
	.pack = convolve_pack,
	.packed = 1 << CONVOLUTION_WEIGHTS,
	.pack_steps = CONVOLUTION_PACK_STEPS,
	.steps = convolve_steps,
	.run = convolve_run,
};
