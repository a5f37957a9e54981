/* out = the bits of in1 shifted left by value, or right where that is negative. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_logical_shift_c = {
	.number = NPUMEM_KERNEL_PACKED_LOGICAL_SHIFT_C,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_logical,
	.steps = steps_elementwise,
	.run = packed_run_logical_shift,
};
