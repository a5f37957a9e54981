/* 2D convolution: every output channel sees every input channel. */
#include "daemon/device/kernel_support/convolve.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, 1, error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return convolve_scratch_bytes(call, 1);
}

static void run(struct kernel_call *call)
{
	convolve_run(call, 1);
}

const struct kernel kernel_conv2d = {
	.number = NPUMEM_KERNEL_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
