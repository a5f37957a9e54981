/* Any element type to any other: fixed point, integers (as fixed point without fractional bits) and fp32. One
 * rounding and one saturation; an infinity saturates; a NaN has no place in a container and is refused. */
#include "daemon/device/fixed/real.h"
#include "daemon/device/fixed/requantize.h"
#include "daemon/device/fixed/round.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, OUT };
enum { BLOCK = 256 };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	return status ? status : operands_check_shape(call, OUT, &operands_get(call, IN)->shape, "in has", error);
}

static int check_data(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, IN);
	const struct npumem_dims *shape = &in->shape;
	const float *reals = in->data;
	int64_t n = in->dtype == NPUMEM_FP32 ? operands_elements(in) : 0, i = 0;
	int64_t pending = 0;
	/* What is no longer wanted need not be refused. */
	while (i < n && !real_is_nan(reals[i]) && kernel_look(call, 1, &pending))
		i++;
	if (i == n || !real_is_nan(reals[i]))
		return 0;
	int64_t w = i % shape->w, h = i / shape->w % shape->h;
	int64_t c = i / (shape->w * shape->h) % shape->c, batch = i / (shape->w * shape->h * shape->c);
	npumem_error_set(error, NPUMEM_INVALID,
			 "%s: in is NaN at [%lld,%lld,%lld,%lld], which no type of out can hold", call->row->name,
			 (long long)batch, (long long)c, (long long)h, (long long)w);
	npumem_error_text(error, "role", call->roles[IN].name);
	npumem_error_number(error, "n", batch);
	npumem_error_number(error, "c", c);
	npumem_error_number(error, "h", h);
	npumem_error_number(error, "w", w);
	return NPUMEM_INVALID;
}

static void copy_fp32(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	int64_t pending = 0;
	if (elements_copy(call, out->data, in->data, operands_elements(in), sizeof(float), &pending))
		kernel_step(call, pending);
}

static void to_fp32(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	float *reals = out->data;
	int64_t n = operands_elements(in);
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		int64_t values[BLOCK];
		elements_load64(in->dtype, in->data, i, count, values);
		for (int64_t k = 0; k < count; k++)
			reals[i + k] = real_to_fp32(values[k], in->frac_bits, call->rounding);
		if (!kernel_step(call, count))
			return;
	}
}

static void from_fp32(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	const float *reals = in->data;
	struct requantize store; /* of values that are already rounded and saturated */
	requantize_init(&store, out->dtype, 0, call->rounding);
	int64_t n = operands_elements(in);
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		int64_t values[BLOCK];
		for (int64_t k = 0; k < count; k++) {
			struct real real = real_from_fp32(reals[i + k]);
			values[k] = round_clamp(real.mantissa, -(real.exponent + out->frac_bits), call->rounding,
						store.low, store.high, &call->counts.saturated);
		}
		requantize_row64(&store, values, count, (uint8_t *)out->data + i * store.bytes);
		if (!kernel_step(call, count))
			return;
	}
}

static void between_integers(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	struct requantize requantize;
	requantize_init(&requantize, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
	int64_t n = operands_elements(in);
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK;
		int64_t values[BLOCK];
		elements_load64(in->dtype, in->data, i, count, values);
		call->counts.saturated +=
			requantize_row64(&requantize, values, count, (uint8_t *)out->data + i * requantize.bytes);
		if (!kernel_step(call, count))
			return;
	}
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	call->counts = (struct kernel_counts){.saturated = 0};
	if (in->dtype == NPUMEM_FP32 && out->dtype == NPUMEM_FP32)
		copy_fp32(call);
	else if (in->dtype == NPUMEM_FP32)
		from_fp32(call);
	else if (out->dtype == NPUMEM_FP32)
		to_fp32(call);
	else
		between_integers(call);
}

const struct kernel kernel_convert_tensor = {
	.number = NPUMEM_KERNEL_CONVERT_TENSOR,
	.in_place = true,
	.check = check,
	.check_data = check_data,
	.run = run,
};
