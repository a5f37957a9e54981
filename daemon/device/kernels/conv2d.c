/* 2D convolution: every output channel sees every input channel. */
#include "daemon/device/kernel_support/windows/convolve.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, 1, error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return convolve_scratch_bytes(call, 1);
}

static size_t pack_bytes(const struct kernel_call *call)
{
	return convolve_pack_bytes(call, 1);
}

static bool pack(const struct kernel_call *call, void *to)
{
	return convolve_pack(call, 1, to);
}

static int64_t steps(const struct kernel_call *call)
{
	return convolve_steps(call, 1);
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
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = CONVOLUTION_WEIGHTS,
	.steps = steps,
	.run = run,
};
