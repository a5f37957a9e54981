/* 2D convolution: every output channel sees every input channel. */
#include "daemon/device/kernel_support/windows/convolve.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, 1, error);
}

static void plan(struct kernel_call *call)
{
	convolve_plan(call, 1);
}

const struct kernel kernel_conv2d = {
	.number = NPUMEM_KERNEL_CONV2D,
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
