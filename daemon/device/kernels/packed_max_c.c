/* out = the larger of in1 and value. */
#include "daemon/device/kernel_support/elementwise/packed.h"
#include "daemon/device/kernel_support/steps.h"

const struct kernel kernel_packed_max_c = {
	.number = NPUMEM_KERNEL_PACKED_MAX_C,
	.in_place = true,
	.by_feature = PACKED_BY_FEATURE,
	.check = packed_check_order,
	.steps = steps_elementwise,
	.run = packed_run_max,
};
