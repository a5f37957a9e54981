/* Blocks of elements beside the slope of each. */
#include "daemon/device/kernel_support/slope.h"

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"

enum { SLOPE_BLOCK = 256 };

int slope_check(const struct kernel_call *call, const struct npumem_dims *slope, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_fixed(call, SLOPE_IN, error);
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

/* Elements that follow each other and share a slope. */
static int64_t run_length(const struct npumem_dims *in, const struct npumem_dims *slope)
{
	if (slope->w > 1)
		return 1;
	if (slope->h > 1)
		return in->w;
	return slope->c > 1 ? in->h * in->w : in->c * in->h * in->w;
}

static void load_slopes(const struct kernel_operand *slope, int64_t length, int64_t first, int64_t n, int32_t *to)
{
	int64_t count = operands_elements(slope), i = 0;
	while (i < n) {
		int64_t end = i + length - (first + i) % length;
		int32_t value;
		elements_load32(slope->dtype, slope->data, (first + i) / length % count, 1, &value);
		for (; i < end && i < n; i++)
			to[i] = value;
	}
}

/* Puts back what is not negative. */
static void keep_positive(const int32_t *values, int64_t n, unsigned bytes, void *out)
{
	int8_t *out8 = out;
	int16_t *out16 = out;
	if (bytes == 1)
		for (int64_t i = 0; i < n; i++)
			out8[i] = values[i] < 0 ? out8[i] : (int8_t)values[i];
	else
		for (int64_t i = 0; i < n; i++)
			out16[i] = values[i] < 0 ? out16[i] : (int16_t)values[i];
}

void slope_run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, SLOPE_IN), *slope = operands_get(call, SLOPE_SLOPE);
	uint8_t *out = operands_get(call, SLOPE_OUT)->data;
	struct requantize requantize;
	requantize_init(&requantize, in->dtype, slope->frac_bits, call->rounding);
	int64_t n = operands_elements(in), length = run_length(&in->shape, &slope->shape);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t i = 0; i < n; i += SLOPE_BLOCK) {
		int64_t count = n - i < SLOPE_BLOCK ? n - i : SLOPE_BLOCK;
		int32_t values[SLOPE_BLOCK], products[SLOPE_BLOCK];
		elements_load32(in->dtype, in->data, i, count, values);
		load_slopes(slope, length, i, count, products);
		for (int64_t k = 0; k < count; k++)
			products[k] *= values[k] < 0 ? values[k] : 0; /* at most 2^30 */
		call->counts.saturated +=
			requantize_row32(&requantize, products, count, out + i * requantize.bytes);
		keep_positive(values, count, requantize.bytes, out + i * requantize.bytes);
		if (!kernel_step(call, count))
			return;
	}
}
