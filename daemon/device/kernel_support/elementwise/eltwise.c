/* Pieces of rows, with scalars, channels' numbers or planes beside them. */
#include "daemon/device/kernel_support/elementwise/eltwise.h"

#include "daemon/device/kernel_support/operands.h"

static bool is_scalar(const struct kernel_operand *operand)
{
	return operands_elements(operand) == 1;
}

int eltwise_check_spread(const struct kernel_call *call, unsigned role, const struct npumem_dims *whole,
			 const char *why, struct npumem_error *error)
{
	const struct npumem_dims *shape = &operands_get(call, role)->shape;
	struct npumem_dims want = *whole;
	want.n = shape->n == 1 ? 1 : want.n;
	want.c = shape->c == 1 ? 1 : want.c;
	if (shape->h == 1 && shape->w == 1)
		want.h = want.w = 1;
	return operands_check_shape(call, role, &want, why, error);
}

int eltwise_check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	bool second = operands_elements(in2) > operands_elements(in1);
	const struct kernel_operand *whole = second ? in2 : in1;
	int status = operands_check_fixed(call, ELTWISE_IN1, error);
	if (!status)
		status = operands_check_same_dtype(call, ELTWISE_IN2, ELTWISE_IN1, error);
	if (!status)
		status = operands_check_same_dtype(call, ELTWISE_OUT, ELTWISE_IN1, error);
	if (!status)
		status = eltwise_check_spread(call, second ? ELTWISE_IN1 : ELTWISE_IN2, &whole->shape,
					      second ? "in2 has" : "in1 has", error);
	return status ? status
		      : operands_check_shape(call, ELTWISE_OUT, &whole->shape, second ? "in2 has" : "in1 has",
					     error);
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

/* The operand is neither a scalar nor of out's shape. */
static bool is_spread(const struct kernel_operand *operand, const struct kernel_operand *out)
{
	return !is_scalar(operand) && operands_elements(operand) < operands_elements(out);
}

void eltwise_init(struct eltwise *e, struct kernel_call *call, int64_t frac_bits)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	const struct kernel_operand *in1 = operands_get(call, ELTWISE_IN1), *in2 = operands_get(call, ELTWISE_IN2);
	*e = (struct eltwise){.call = call};
	e->spread = is_spread(in1, out) || is_spread(in2, out);
	e->flat = e->spread && out->shape.h == 1 && out->shape.w == 1;
	e->row.in1 = source(in1);
	e->row.in2 = source(in2);
	requantize_init(&e->row.to, out->dtype, frac_bits - out->frac_bits, call->rounding);
}

void eltwise_begin(struct eltwise *e)
{
	e->call->counts = (struct kernel_counts){.saturated = 0};
	(e->spread ? walk_begin_features : walk_begin)(&e->walk, e->call, ELTWISE_OUT);
	if (e->flat) {
		e->walk.length = e->walk.channels;
		e->walk.channels = 1;
	}
}

/* What a spread operand has for the piece: elements of a row, or one number for all of it. */
static void at_spread(const struct eltwise *e, struct row_source *source, const struct kernel_operand *operand)
{
	const struct npumem_dims *shape = &operand->shape;
	bool one = e->flat ? shape->c == 1 : shape->h == 1 && shape->w == 1;
	*source = row_source(operand->dtype);
	source->data = kernel_feature(operand, shape->n > 1 ? e->walk.batch : 0,
				      shape->c > 1 && !e->flat ? e->walk.channel : 0);
	if (one) {
		source->value = (int32_t)row_get(source, 0);
		source->bytes = 0;
	} else {
		source->data = (const uint8_t *)source->data + e->walk.i * source->bytes;
	}
}

static void at(const struct eltwise *e, struct row_source *source, const struct kernel_operand *operand)
{
	if (e->spread && is_spread(operand, operands_get(e->call, ELTWISE_OUT)))
		at_spread(e, source, operand);
	else if (source->bytes)
		source->data = walk_at(&e->walk, operand);
}

bool eltwise_next(struct eltwise *e)
{
	if (!walk_next(&e->walk))
		return false;
	at(e, &e->row.in1, operands_get(e->call, ELTWISE_IN1));
	at(e, &e->row.in2, operands_get(e->call, ELTWISE_IN2));
	e->row.out = walk_at(&e->walk, operands_get(e->call, ELTWISE_OUT));
	return true;
}

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
