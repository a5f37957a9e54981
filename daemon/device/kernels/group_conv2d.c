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

static size_t scratch_bytes(const struct kernel_call *call)
{
	return convolve_scratch_bytes(call, groups(call));
}

static size_t pack_bytes(const struct kernel_call *call)
{
	return convolve_pack_bytes(call, groups(call));
}

static bool pack(const struct kernel_call *call, void *to)
{
	return convolve_pack(call, groups(call), to);
}

static int64_t steps(const struct kernel_call *call)
{
	return convolve_steps(call, groups(call));
}

static void run(struct kernel_call *call)
{
	convolve_run(call, groups(call));
}

const struct kernel kernel_group_conv2d = {
	.number = NPUMEM_KERNEL_GROUP_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = CONVOLUTION_WEIGHTS,
	.steps = steps,
	.run = run,
};
