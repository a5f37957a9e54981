/* Formats that are not far apart meet in 32 bits; which these are the row knows. */
#include "daemon/device/kernel_support/elementwise/eltwise_sum.h"

#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

void eltwise_sum_run(struct kernel_call *call, int sign)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	struct align align;
	struct eltwise e;
	align_init(&align, in1->frac_bits, in2->frac_bits);
	eltwise_init(&e, call, align.frac_bits);
	e.row.align = align;
	e.row.sign = sign;
	row_init_sum(&e.row, call->isa, row_magnitude(in1->dtype), row_magnitude(in2->dtype));
	for (eltwise_begin(&e); eltwise_next(&e);)
		row_sum(&e.row, e.walk.n, &call->counts.saturated);
}
