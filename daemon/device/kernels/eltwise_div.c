/* out = in1 / in2 in any formats: y = x1 * 2^(f_out - f1 + f2) / x2, rounded
 * once, then saturated once. x / 0 is the container's end of x's sign, 0 / 0 is 0. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"

/* Operands are at most 2^15. From a shift of 2^32 on every quotient but 0 is past its container; from one of 2^-17
 * on each is below one half. So no shift beyond these gives another result, and no product leaves 2^51. */
enum { LEFT_MAX = 32, RIGHT_MAX = 17 };

static void run(struct kernel_call *call)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	int64_t shift = out->frac_bits - operands_get(call, ELTWISE_IN1)->frac_bits +
			operands_get(call, ELTWISE_IN2)->frac_bits;
	int64_t left = shift < 0 ? 0 : shift < LEFT_MAX ? shift : LEFT_MAX;
	int64_t right = shift > 0 ? 0 : -shift < RIGHT_MAX ? -shift : RIGHT_MAX;
	struct eltwise e;
	eltwise_init(&e, call, out->frac_bits + ROW_GUARD_BITS);
	e.row.in1_unit = (int64_t)1 << (left + ROW_GUARD_BITS);
	e.row.in2_unit = (int64_t)1 << right;
	e.row.zeros = &call->counts.divided_by_zero;
	row_init(&e.row, call->isa, 1 << 20);
	for (eltwise_begin(&e); eltwise_next(&e);)
		row_quotient(&e.row, e.walk.n, &call->counts.saturated);
}

const struct kernel kernel_eltwise_div = {
	.number = NPUMEM_KERNEL_ELTWISE_DIV,
	.in_place = true,
	.by_feature = ELTWISE_BY_FEATURE,
	.check = eltwise_check,
	.steps = steps_elementwise_slow,
	.run = run,
};
