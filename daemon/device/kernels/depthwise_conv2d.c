/* Depthwise 2D convolution: a group per input channel. With O = C * m, output channel c * m + j sees channel c. */
#include "daemon/device/kernel_support/convolve.h"
#include "daemon/device/kernel_support/operands.h"

static int64_t groups(const struct kernel_call *call)
{
	return operands_get(call, CONVOLUTION_IN)->shape.c;
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return convolve_check(call, groups(call), error);
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

static void run(struct kernel_call *call)
{
	convolve_run(call, groups(call));
}

const struct kernel kernel_depthwise_conv2d = {
	.number = NPUMEM_KERNEL_DEPTHWISE_CONV2D,
	.by_feature = 1 << CONVOLUTION_IN | 1 << CONVOLUTION_OUT,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = CONVOLUTION_WEIGHTS,
	.run = run,
};
