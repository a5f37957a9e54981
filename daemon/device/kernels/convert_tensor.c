/* Any element type to any other: fixed point, integers (as fixed point without fractional bits) and fp32. One
 * rounding and one saturation; an infinity saturates; a NaN has no place in a container and is refused. */
#include <string.h>

#include "daemon/device/fixed/real.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/walk.h"

enum { IN, OUT };
enum { BLOCK = 256 };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	return operands_check_shape(call, OUT, &operands_get(call, IN)->shape, "in has", error);
}

/* Where the first NaN of a feature is, or `length`. What is no longer wanted need not be refused. */
static int64_t find_nan(const struct kernel_call *call, const float *reals, int64_t length, int64_t *pending)
{
	int64_t piece = kernel_piece(call);
	for (int64_t i = 0, count; i < length; i += count) {
		count = length - i < piece ? length - i : piece;
		int64_t at = real_find_nan(reals + i, count);
		if (at < count)
			return i + at;
		if (!kernel_look(call, count, pending))
			return length;
	}
	return length;
}

static int refuse_nan(const struct kernel_call *call, int64_t n, int64_t c, int64_t h, int64_t w,
		      struct npumem_error *error)
{
	npumem_error_set(error, NPUMEM_INVALID,
			 "%s: in is NaN at [%lld,%lld,%lld,%lld], which no type of out can hold", call->row->name,
			 (long long)n, (long long)c, (long long)h, (long long)w);
	npumem_error_text(error, "role", call->roles[IN].name);
	npumem_error_number(error, "n", n);
	npumem_error_number(error, "c", c);
	npumem_error_number(error, "h", h);
	npumem_error_number(error, "w", w);
	return NPUMEM_INVALID;
}

static int check_data(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_operand *in = operands_get(call, IN);
	const struct npumem_dims *shape = &in->shape;
	int64_t length = shape->h * shape->w, pending = 0;
	if (in->dtype != NPUMEM_FP32)
		return 0;
	for (int64_t n = 0; n < shape->n; n++)
		for (int64_t c = 0; c < shape->c; c++) {
			int64_t at = find_nan(call, kernel_feature(in, n, c), length, &pending);
			if (at < length)
				return refuse_nan(call, n, c, at / shape->w, at % shape->w, error);
		}
	return 0;
}

/* How a piece of n elements is converted. */
typedef void convert(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated);

static void copy(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	(void)call;
	(void)saturated;
	memcpy(row->out, row->in1.data, (size_t)n * sizeof(float));
}

static void between(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	(void)call;
	row_requantize(row, n, saturated);
}

/* By doubles, whatever the shift. */
static void from_int32(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	(void)call;
	row_product(row, n, saturated);
}

static void from_real(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	(void)call;
	row_from_real(row, n, saturated);
}

static void to_real(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	(void)call;
	row_to_real(row, n, saturated);
}

/* Of types of which one has 32 bits. */
static void wide(struct row *row, const struct kernel_call *call, int64_t n, int64_t *saturated)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	for (int64_t i = 0; i < n; i += BLOCK) {
		int64_t count = n - i < BLOCK ? n - i : BLOCK, values[BLOCK];
		uint8_t *to = (uint8_t *)row->out + i * npumem_dtype_bytes(out->dtype);
		if (in->dtype != NPUMEM_FP32)
			elements_load64(in->dtype, row->in1.data, i, count, values);
		for (int64_t k = 0; k < count && in->dtype == NPUMEM_FP32; k++) {
			struct real real = real_from_fp32(((const float *)row->in1.data)[i + k]);
			values[k] = round_clamp(real.mantissa, -(real.exponent + out->frac_bits), call->rounding,
						row->to.low, row->to.high, saturated);
		}
		for (int64_t k = 0; k < count && out->dtype == NPUMEM_FP32; k++)
			((float *)to)[k] = real_to_fp32(values[k], in->frac_bits, call->rounding);
		struct requantize requantize = row->to;
		requantize.shift = in->dtype == NPUMEM_FP32 ? 0 : requantize.shift;
		if (out->dtype != NPUMEM_FP32)
			*saturated += requantize_row64(&requantize, values, count, to);
	}
}

static convert *choose(struct row *row, const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	bool in_real = in->dtype == NPUMEM_FP32, out_real = out->dtype == NPUMEM_FP32;
	/* A real has no container, only its size. */
	requantize_init(&row->to, out_real ? NPUMEM_FX8 : out->dtype,
			(in_real ? 0 : in->frac_bits) - (out_real ? 0 : out->frac_bits), call->rounding);
	row->to.bytes = npumem_dtype_bytes(out->dtype);
	if (in_real && out_real)
		return copy;
	if (in->dtype == NPUMEM_INT32 && !out_real && npumem_dtype_bytes(out->dtype) <= 2) {
		row->in2 = (struct row_source){.value = 1};
		row_init_product(row, call->isa, (int64_t)INT32_MAX + 1);
		return from_int32;
	}
	if ((!in_real && npumem_dtype_bytes(in->dtype) > 2) || (!out_real && npumem_dtype_bytes(out->dtype) > 2))
		return wide;
	if (!in_real)
		row->in1 = row_source(in->dtype);
	if (in_real || out_real)
		row_init_real(row, call->isa);
	else
		row_init(row, call->isa, row_magnitude(in->dtype));
	return in_real ? from_real : out_real ? to_real : between;
}

static void run(struct kernel_call *call)
{
	struct row row = {.in1 = {.bytes = sizeof(float), .mask = -1}};
	struct walk walk;
	convert *converted = choose(&row, call);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (walk_begin(&walk, call, OUT); walk_next(&walk);) {
		row.in1.data = walk_at(&walk, operands_get(call, IN));
		row.out = walk_at(&walk, operands_get(call, OUT));
		converted(&row, call, walk.n, &call->counts.saturated);
	}
}

const struct kernel kernel_convert_tensor = {
	.number = NPUMEM_KERNEL_CONVERT_TENSOR,
	.in_place = true,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.check_data = check_data,
	.steps = steps_elementwise_slow,
	.run = run,
};
