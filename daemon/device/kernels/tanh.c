/* The hyperbolic tangent, by table. */
#include "daemon/device/kernel_support/elementwise/lut_map.h"
#include "daemon/device/kernel_support/steps.h"

static void run(struct kernel_call *call)
{
	lut_map_run(call, LUT_TANH);
}

const struct kernel kernel_tanh = {
	.number = NPUMEM_KERNEL_TANH,
	.in_place = true,
	.by_feature = LUT_MAP_BY_FEATURE,
	.check = lut_map_check,
	.steps = steps_elementwise_slow,
	.run = run,
};
