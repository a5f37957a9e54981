/* out = the smaller of in1 and in2, which have one format; either may be a scalar. */
#include "daemon/device/kernel_support/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = eltwise_check(call, error);
	return status ? status : operands_check_same_frac_bits(call, ELTWISE_IN2, ELTWISE_IN1, error);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *out = operands_get(call, ELTWISE_OUT);
	struct requantize requantize;
	requantize_init(&requantize, out->dtype, in1->frac_bits - out->frac_bits, call->rounding);
	struct eltwise e;
	for (eltwise_begin(&e, call); eltwise_next(&e);) {
		for (int64_t i = 0; i < e.n; i++)
			e.values[i] = e.in1[i] < e.in2[i] ? e.in1[i] : e.in2[i];
		eltwise_store(&e, &requantize);
	}
}

const struct kernel kernel_eltwise_min = {
	.number = NPUMEM_KERNEL_ELTWISE_MIN,
	.in_place = true,
	.check = check,
	.run = run,
};
