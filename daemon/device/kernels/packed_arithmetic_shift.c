/* out = in1 shifted left by in2, or right where that is negative, its sign kept. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_arithmetic_shift = {
	.number = NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_arithmetic,
	.steps = steps_elementwise,
	.run = packed_run_arithmetic_shift,
};
