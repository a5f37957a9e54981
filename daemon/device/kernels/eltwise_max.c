/* out = the larger of in1 and in2, which have one format. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = eltwise_check(call, error);
	return status ? status : operands_check_same_frac_bits(call, ELTWISE_IN2, ELTWISE_IN1, error);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1);
	struct eltwise e;
	eltwise_init(&e, call, in1->frac_bits);
	row_init(&e.row, call->isa, row_magnitude(in1->dtype));
	for (eltwise_begin(&e); eltwise_next(&e);)
		row_larger(&e.row, e.walk.n, &call->counts.saturated);
}

const struct kernel kernel_eltwise_max = {
	.number = NPUMEM_KERNEL_ELTWISE_MAX,
	.in_place = true,
	.walks = true,
	.by_feature = ELTWISE_BY_FEATURE,
	.check = check,
	.steps = steps_elementwise,
	.run = run,
};
