/* out = in1 * in2 in any formats: the exact product, rounded once. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	struct eltwise e;
	eltwise_init(&e, call, in1->frac_bits + in2->frac_bits);
	row_init_product(&e.row, call->isa, row_magnitude(in1->dtype) * row_magnitude(in2->dtype));
	for (eltwise_begin(&e); eltwise_next(&e);)
		row_product(&e.row, e.walk.n, &call->counts.saturated);
}

const struct kernel kernel_eltwise_mul = {
	.number = NPUMEM_KERNEL_ELTWISE_MUL,
	.in_place = true,
	.walks = true,
	.by_feature = ELTWISE_BY_FEATURE,
	.check = eltwise_check,
	.steps = steps_elementwise,
	.run = run,
};
