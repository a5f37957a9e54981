/* out = acc + in1 * in2; acc and out are of one format, into which the exact sum is rounded once. in1 or in2 may
 * be a scalar. acc stands behind out in the row, so that the first three roles are those of the element-wise walk.
 */
#include "daemon/device/fixed/align.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

enum { ACC = ELTWISE_OUT + 1 };

static int check_factor(const struct kernel_call *call, unsigned role, struct npumem_error *error)
{
	int status = operands_check_fixed(call, role, error);
	if (status || operands_elements(operands_get(call, role)) == 1)
		return status;
	return operands_check_shape(call, role, &operands_get(call, ELTWISE_OUT)->shape, "out has", error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status)
		status = check_factor(call, ELTWISE_IN1, error);
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
	const struct kernel_operand *acc = operands_get(call, ACC), *out = operands_get(call, ELTWISE_OUT);
	struct align align;
	align_init(&align, acc->frac_bits,
		   operands_get(call, ELTWISE_IN1)->frac_bits + operands_get(call, ELTWISE_IN2)->frac_bits);
	struct requantize requantize, store; /* store: of values that are already in the container */
	requantize_init(&requantize, out->dtype, align.frac_bits - out->frac_bits, call->rounding);
	requantize_init(&store, out->dtype, 0, call->rounding);
	struct eltwise e;
	for (eltwise_begin(&e, call); eltwise_next(&e);) {
		int32_t terms[ELTWISE_BLOCK];
		elements_load32(acc->dtype, acc->data, e.first, e.n, terms);
		for (int64_t i = 0; i < e.n; i++)
			e.values[i] = (int32_t)align_sum(&align, terms[i], e.in1[i] * e.in2[i], &requantize,
							 &call->counts.saturated);
		eltwise_store(&e, &store);
		call->counts.macs += e.n;
	}
}

const struct kernel kernel_mac = {
	.number = NPUMEM_KERNEL_MAC,
	.in_place = true,
	.check = check,
	.run = run,
};
