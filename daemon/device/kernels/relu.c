/* ReLU by itself: every element in out's format, clipped to the limits of relu=. */
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/limits.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/walk.h"

enum { IN, OUT };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_fixed(call, IN, error);
	if (!status)
		status = operands_check_same_dtype(call, OUT, IN, error);
	return status ? status : operands_check_shape(call, OUT, &operands_get(call, IN)->shape, "in has", error);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	struct row row = {.in1 = row_source(in->dtype)};
	struct walk walk;
	requantize_init(&row.to, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
	limits_relu(call, out->frac_bits, &row.to);
	row_init(&row, call->isa, row_magnitude(in->dtype));
	call->counts = (struct kernel_counts){.saturated = 0};
	for (walk_begin(&walk, call, OUT); walk_next(&walk);) {
		row.in1.data = walk_at(&walk, in);
		row.out = walk_at(&walk, out);
		row_requantize(&row, walk.n, &call->counts.saturated);
	}
}

const struct kernel kernel_relu = {
	.number = NPUMEM_KERNEL_RELU,
	.in_place = true,
	.walks = true,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.steps = steps_elementwise,
	.run = run,
};
