/* out = the larger of in1 and in2. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_max = {
	.number = NPUMEM_KERNEL_PACKED_MAX,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_order,
	.steps = steps_elementwise,
	.run = packed_run_max,
};
