/* out = acc + in1 * in2; acc and out are of one format, into which the exact sum is rounded once. in1 and in2 may
 * be spread. acc stands behind out in the row, so that the first three roles are those of the element-wise walk.
 */
#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

enum { ACC = ELTWISE_OUT + 1 };

static int check_factor(const struct kernel_call *call, unsigned role, struct npumem_error *error)
{
	int status = operands_check_fixed(call, role, error);
	return status ? status
		      : eltwise_check_spread(call, role, &operands_get(call, ELTWISE_OUT)->shape, "out has",
					     error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = check_factor(call, ELTWISE_IN1, error);
	if (!status)
		status = check_factor(call, ELTWISE_IN2, error);
	if (!status)
		status = operands_check_fixed(call, ACC, error);
	if (!status)
		status =
			operands_check_shape(call, ACC, &operands_get(call, ELTWISE_OUT)->shape, "out has", error);
	if (!status)
		status = operands_check_same_dtype(call, ELTWISE_OUT, ACC, error);
	return status ? status : operands_check_same_frac_bits(call, ELTWISE_OUT, ACC, error);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	const struct kernel_operand *acc = operands_get(call, ACC);
	struct align align;
	struct eltwise e;
	align_init(&align, acc->frac_bits, in1->frac_bits + in2->frac_bits);
	eltwise_init(&e, call, align.frac_bits);
	e.row.align = align;
	e.row.acc = row_source(acc->dtype);
	row_init_mac(&e.row, call->isa, row_magnitude(acc->dtype),
		     row_magnitude(in1->dtype) * row_magnitude(in2->dtype));
	for (eltwise_begin(&e); eltwise_next(&e);) {
		e.row.acc.data = walk_at(&e.walk, acc);
		row_mac(&e.row, e.walk.n, &call->counts.saturated);
		call->counts.macs += e.walk.n;
	}
}

const struct kernel kernel_mac = {
	.number = NPUMEM_KERNEL_MAC,
	.in_place = true,
	.by_feature = ELTWISE_BY_FEATURE | 1 << ACC,
	.check = check,
	.steps = steps_elementwise,
	.run = run,
};
