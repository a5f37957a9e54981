/* out = in1 * in2 in any formats, either of which may be a scalar: the exact product, rounded once. */
#include "daemon/device/kernel_support/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

static void run(struct kernel_call *call)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	int64_t frac_bits =
		operands_get(call, ELTWISE_IN1)->frac_bits + operands_get(call, ELTWISE_IN2)->frac_bits;
	struct requantize requantize;
	requantize_init(&requantize, out->dtype, frac_bits - out->frac_bits, call->rounding);
	struct eltwise e;
	for (eltwise_begin(&e, call); eltwise_next(&e);) {
		for (int64_t i = 0; i < e.n; i++)
			e.values[i] = e.in1[i] * e.in2[i]; /* at most 2^30 */
		eltwise_store(&e, &requantize);
	}
}

const struct kernel kernel_eltwise_mul = {
	.number = NPUMEM_KERNEL_ELTWISE_MUL,
	.in_place = true,
	.check = eltwise_check,
	.run = run,
};
