/* out = (in1 - value) / 2^rshift. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_sub_c = {
	.number = NPUMEM_KERNEL_PACKED_SUB_C,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_sum,
	.steps = steps_elementwise,
	.run = packed_run_sub,
};
