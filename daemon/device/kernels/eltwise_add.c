/* out = in1 + in2. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/steps.h"

static void run(struct kernel_call *call)
{
	eltwise_sum_run(call, 1);
}

const struct kernel kernel_eltwise_add = {
	.number = NPUMEM_KERNEL_ELTWISE_ADD,
	.in_place = true,
	.walks = true,
	.by_feature = ELTWISE_BY_FEATURE,
	.check = eltwise_check,
	.steps = steps_elementwise,
	.run = run,
};
