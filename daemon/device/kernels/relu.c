/* ReLU by itself: every element clipped to the limits of relu=; the format stays. */
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/limits.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, OUT };
enum { BLOCK = 256 };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_fixed(call, IN, error);
	if (!status)
		status = operands_check_same_dtype(call, OUT, IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, OUT, IN, error);
	return status ? status : operands_check_shape(call, OUT, &operands_get(call, IN)->shape, "in has", error);
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	struct requantize requantize;
	requantize_init(&requantize, out->dtype, 0, call->rounding);
	limits_relu(call, out->frac_bits, &requantize);
	call->counts = (struct kernel_counts){.saturated = 0};
	int64_t length = in->shape.h * in->shape.w, pending = 0;
	for (int64_t n = 0; n < in->shape.n; n++)
		for (int64_t c = 0; c < in->shape.c; c++) {
			const void *from = kernel_feature(in, n, c);
			uint8_t *to = kernel_feature(out, n, c);
			for (int64_t i = 0; i < length; i += BLOCK) {
				int64_t count = length - i < BLOCK ? length - i : BLOCK;
				int32_t values[BLOCK];
				elements_load32(in->dtype, from, i, count, values);
				requantize_row32(&requantize, values, count, to + i * requantize.bytes);
				if (!kernel_step_rarely(call, count, &pending))
					return;
			}
		}
	kernel_step(call, pending);
}

const struct kernel kernel_relu = {
	.number = NPUMEM_KERNEL_RELU,
	.in_place = true,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.run = run,
};
