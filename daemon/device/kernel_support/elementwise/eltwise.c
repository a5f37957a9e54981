/* Pieces of rows, with scalars beside them. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"

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

static struct row_source source(const struct kernel_operand *operand)
{
	struct row_source source = row_source(operand->dtype);
	if (!is_scalar(operand))
		return source;
	source.data = kernel_feature(operand, 0, 0);
	source.value = (int32_t)row_get(&source, 0);
	source.bytes = 0;
	return source;
}

void eltwise_init(struct eltwise *e, struct kernel_call *call, int64_t frac_bits)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	*e = (struct eltwise){.call = call};
	e->row.in1 = source(operands_get(call, ELTWISE_IN1));
	e->row.in2 = source(operands_get(call, ELTWISE_IN2));
	requantize_init(&e->row.to, out->dtype, frac_bits - out->frac_bits, call->rounding);
}

void eltwise_begin(struct eltwise *e)
{
	e->call->counts = (struct kernel_counts){.saturated = 0};
	walk_begin(&e->walk, e->call, ELTWISE_OUT);
}

static void at(const struct walk *walk, struct row_source *source, const struct kernel_operand *operand)
{
	if (source->bytes)
		source->data = walk_at(walk, operand);
}

bool eltwise_next(struct eltwise *e)
{
	if (!walk_next(&e->walk))
		return false;
	at(&e->walk, &e->row.in1, operands_get(e->call, ELTWISE_IN1));
	at(&e->walk, &e->row.in2, operands_get(e->call, ELTWISE_IN2));
	e->row.out = walk_at(&e->walk, operands_get(e->call, ELTWISE_OUT));
	return true;
}
