/* out = in1 * in2 / 2^rshift, of 8-bit sources. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_mul = {
	.number = NPUMEM_KERNEL_PACKED_MUL,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_mul,
	.steps = steps_elementwise,
	.run = packed_run_mul,
};
