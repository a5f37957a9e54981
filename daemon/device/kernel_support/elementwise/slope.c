/* Rows of elements beside the slope of each. */
#include "daemon/device/kernel_support/elementwise/slope.h"

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/walk.h"

int slope_check(const struct kernel_call *call, const struct npumem_dims *slope, struct npumem_error *error)
{
	int status = operands_check_fixed(call, SLOPE_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, SLOPE_SLOPE, SLOPE_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, SLOPE_OUT, SLOPE_IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, SLOPE_OUT, SLOPE_IN, error);
	if (!status)
		status = operands_check_shape(call, SLOPE_SLOPE, slope, "must have", error);
	return status ? status
		      : operands_check_shape(call, SLOPE_OUT, &operands_get(call, SLOPE_IN)->shape, "in has",
					     error);
}

static int32_t slope_at(const struct kernel_operand *slope, int64_t i)
{
	return slope->dtype == NPUMEM_FX8 ? ((const int8_t *)slope->data)[i] : ((const int16_t *)slope->data)[i];
}

/* The slopes of elements from `at` of a feature of channel `c`: returns how many of the n the row now has. */
static int64_t find_slopes(const struct kernel_operand *slope, int64_t width, int64_t c, int64_t at, int64_t n,
			   struct row_source *source)
{
	int64_t left = width - at % width;
	if (slope->shape.w > 1) {
		*source = row_source(slope->dtype);
		source->data = (const uint8_t *)slope->data + at % width * source->bytes;
		return left < n ? left : n;
	}
	source->bytes = 0;
	if (slope->shape.h > 1) {
		source->value = slope_at(slope, at / width);
		return left < n ? left : n;
	}
	source->value = slope_at(slope, slope->shape.c > 1 ? c : 0);
	return n;
}

static void run_piece(const struct walk *walk, const struct kernel_operand *slope, int64_t width, struct row *row,
		      int64_t *saturated)
{
	for (int64_t i = 0, n; i < walk->n; i += n) {
		n = find_slopes(slope, width, walk->channel, walk->i + i, walk->n - i, &row->in2);
		row_slope(row, n, saturated);
		row->in1.data = (const uint8_t *)row->in1.data + n * row->to.bytes;
		row->out = (uint8_t *)row->out + n * row->to.bytes;
	}
}

int64_t slope_steps(const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, SLOPE_IN), *slope = operands_get(call, SLOPE_SLOPE);
	double rows = (double)(in->shape.n * in->shape.c);
	if (slope->shape.h > 1 || slope->shape.w > 1)
		rows *= (double)in->shape.h;
	return steps_whole(steps_elements(in) * steps_per_element(call) + rows * STEPS_ROW);
}

void slope_run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, SLOPE_IN), *slope = operands_get(call, SLOPE_SLOPE);
	const struct kernel_operand *out = operands_get(call, SLOPE_OUT);
	struct row row = {.in1 = row_source(in->dtype)};
	struct walk walk;
	requantize_init(&row.to, in->dtype, slope->frac_bits, call->rounding);
	row_init_product(&row, call->isa, row_magnitude(in->dtype) * row_magnitude(slope->dtype));
	call->counts = (struct kernel_counts){.saturated = 0};
	for (walk_begin_features(&walk, call, SLOPE_OUT); walk_next(&walk);) {
		row.in1.data = walk_at(&walk, in);
		row.out = walk_at(&walk, out);
		run_piece(&walk, slope, in->shape.w, &row, &call->counts.saturated);
	}
}
