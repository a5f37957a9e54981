/* Blocks of pairs, with scalars spread over them. */
#include "daemon/device/kernel_support/eltwise.h"

#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"

static bool is_scalar(const struct kernel_operand *operand)
{
	return operands_elements(operand) == 1;
}

int eltwise_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_fixed(call, ELTWISE_IN1, error);
	if (!status)
		status = operands_check_same_dtype(call, ELTWISE_IN2, ELTWISE_IN1, error);
	if (!status)
		status = operands_check_same_dtype(call, ELTWISE_OUT, ELTWISE_IN1, error);
	if (!status && !is_scalar(in1) && !is_scalar(in2))
		status = operands_check_shape(call, ELTWISE_IN2, &in1->shape, "in1, which is no scalar, has",
					      error);
	const struct kernel_operand *whole = is_scalar(in1) ? in2 : in1;
	return status ? status
		      : operands_check_shape(call, ELTWISE_OUT, &whole->shape,
					     whole == in1 ? "in1 has" : "in2 has", error);
}

void eltwise_begin(struct eltwise *e, struct kernel_call *call)
{
	e->call = call;
	e->first = e->n = 0;
	e->end = operands_elements(operands_get(call, ELTWISE_OUT));
	call->counts = (struct kernel_counts){.saturated = 0};
}

static void load(const struct kernel_operand *operand, int64_t first, int64_t n, int32_t *to)
{
	if (!is_scalar(operand)) {
		elements_load32(operand->dtype, operand->data, first, n, to);
		return;
	}
	elements_load32(operand->dtype, operand->data, 0, 1, to);
	for (int64_t i = 1; i < n; i++)
		to[i] = to[0];
}

bool eltwise_next(struct eltwise *e)
{
	e->first += e->n;
	e->n = e->end - e->first < ELTWISE_BLOCK ? e->end - e->first : ELTWISE_BLOCK;
	if (e->n == 0)
		return false;
	load(operands_get(e->call, ELTWISE_IN1), e->first, e->n, e->in1);
	load(operands_get(e->call, ELTWISE_IN2), e->first, e->n, e->in2);
	return true;
}

void eltwise_store(struct eltwise *e, const struct requantize *requantize)
{
	uint8_t *out = operands_get(e->call, ELTWISE_OUT)->data;
	e->call->counts.saturated +=
		requantize_row32(requantize, e->values, e->n, out + e->first * requantize->bytes);
	if (!kernel_step(e->call, e->n))
		e->end = e->first + e->n;
}
