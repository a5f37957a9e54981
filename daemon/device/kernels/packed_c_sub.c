/* out = (value - in1) / 2^rshift. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_c_sub = {
	.number = NPUMEM_KERNEL_PACKED_C_SUB,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_sum,
	.steps = steps_elementwise,
	.run = packed_run_sub_from,
};
