/* in with padding= (top, bottom, left, right) of zeros, or of value=, around every feature; of any type. value is
 * the container's integer; for fp32 the number itself. */
#include <string.h>

#include "daemon/device/kernel_support/operands.h"

enum { IN, OUT };
enum { TOP, BOTTOM, LEFT, RIGHT, SIDES };

/* So that no sum with an extent leaves 64 bits. */
static const int64_t padding_max = 0x7fffffff;
/* Every integer up to here is an fp32. */
static const int64_t fp32_max = INT64_C(1) << 24;

static int check_padding(const struct kernel_call *call, struct npumem_error *error)
{
	static const char *const sides[SIDES] = {"top", "bottom", "left", "right"};
	int status = 0;
	for (unsigned i = 0; i < SIDES && !status; i++)
		status = operands_check_param(call, NPUMEM_PARAM_PADDING, sides[i],
					      kernel_param(call, NPUMEM_PARAM_PADDING, i, 0), 0, padding_max,
					      error);
	return status;
}

static int check_value(const struct kernel_call *call, struct npumem_error *error)
{
	int64_t low, high;
	int dtype = operands_get(call, IN)->dtype;
	if (!npumem_dtype_range(dtype, &low, &high)) {
		low = -fp32_max;
		high = fp32_max;
	}
	return operands_check_param(call, NPUMEM_PARAM_VALUE, npumem_dtype_name(dtype),
				    kernel_param(call, NPUMEM_PARAM_VALUE, 0, 0), low, high, error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status)
		status = operands_check_same_dtype(call, OUT, IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, OUT, IN, error);
	if (!status)
		status = check_padding(call, error);
	if (!status)
		status = check_value(call, error);
	if (status)
		return status;
	struct npumem_dims want = operands_get(call, IN)->shape;
	want.h += kernel_param(call, NPUMEM_PARAM_PADDING, TOP, 0) +
		  kernel_param(call, NPUMEM_PARAM_PADDING, BOTTOM, 0);
	want.w += kernel_param(call, NPUMEM_PARAM_PADDING, LEFT, 0) +
		  kernel_param(call, NPUMEM_PARAM_PADDING, RIGHT, 0);
	return operands_check_shape(call, OUT, &want, "in and padding give", error);
}

/* n elements of `value`; returns where the next one goes. */
static uint8_t *fill(uint8_t *to, int dtype, int64_t value, int64_t n)
{
	unsigned bytes = npumem_dtype_bytes(dtype);
	float real = (float)value;
	const void *element = dtype == NPUMEM_FP32 ? (const void *)&real : &value; /* little-endian */
	if (value == 0 || bytes == 1) {
		memset(to, (int)(value & 0xff), (size_t)n * bytes);
	} else {
		for (int64_t i = 0; i < n; i++)
			memcpy(to + i * bytes, element, bytes);
	}
	return to + n * bytes;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	int64_t value = kernel_param(call, NPUMEM_PARAM_VALUE, 0, 0);
	int64_t sides[SIDES];
	for (unsigned i = 0; i < SIDES; i++)
		sides[i] = kernel_param(call, NPUMEM_PARAM_PADDING, i, 0);
	size_t row_bytes = (size_t)in->shape.w * npumem_dtype_bytes(in->dtype);
	const uint8_t *from = in->data;
	uint8_t *to = out->data;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t feature = 0; feature < in->shape.n * in->shape.c; feature++) {
		to = fill(to, in->dtype, value, sides[TOP] * out->shape.w);
		for (int64_t h = 0; h < in->shape.h; h++) {
			to = fill(to, in->dtype, value, sides[LEFT]);
			memcpy(to, from, row_bytes);
			to = fill(to + row_bytes, in->dtype, value, sides[RIGHT]);
			from += row_bytes;
		}
		to = fill(to, in->dtype, value, sides[BOTTOM] * out->shape.w);
		if (!kernel_step(call, out->shape.h * out->shape.w))
			return;
	}
}

const struct kernel kernel_pad2d = {
	.number = NPUMEM_KERNEL_PAD2D,
	.check = check,
	.run = run,
};
