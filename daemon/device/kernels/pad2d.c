/* in with padding= (top, bottom, left, right) of zeros, or of value=, around every feature; of any type. fx8 and
 * fx16 may become each other, with other frac_bits. value is an integer of out's container; for fp32 the number
 * itself. */
#include <string.h>

#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/memory/blocks.h"

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
	int dtype = operands_get(call, OUT)->dtype;
	if (!npumem_dtype_range(dtype, &low, &high)) {
		low = -fp32_max;
		high = fp32_max;
	}
	return operands_check_param(call, NPUMEM_PARAM_VALUE, npumem_dtype_name(dtype),
				    kernel_param(call, NPUMEM_PARAM_VALUE, 0, 0), low, high, error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = elements_check_move(call, OUT, IN, error);
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

static void fill(uint8_t *to, int dtype, int64_t value, int64_t n)
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
}

/* Where the output grows. */
struct growth {
	const struct kernel_call *call;
	int dtype;
	unsigned bytes;
	int64_t value, pending;
	uint8_t *to;
	struct elements_move move;
};

/* Each false where the rest is no longer wanted. */

static bool pad(struct growth *growth, int64_t n)
{
	int64_t piece = kernel_piece(growth->call);
	for (; n > 0; n -= piece) {
		int64_t count = n < piece ? n : piece;
		fill(growth->to, growth->dtype, growth->value, count);
		growth->to += count * growth->bytes;
		if (!kernel_step_rarely(growth->call, count, &growth->pending))
			return false;
	}
	return true;
}

static bool copy_row(struct growth *growth, const uint8_t *from, int64_t n)
{
	uint8_t *to = growth->to;
	growth->to += n * growth->bytes;
	return elements_move(&growth->move, to, from, n, &growth->pending);
}

/* Each makes the rows of a feature and what pads the end of one and the beginning of the next, which is one piece.
 */

static bool row_by_row(struct growth *growth, const uint8_t *from, const struct npumem_dims *shape,
		       int64_t between)
{
	for (int64_t h = 0; h < shape->h; h++, from += shape->w * growth->move.in_bytes)
		if ((h > 0 && !pad(growth, between)) || !copy_row(growth, from, shape->w))
			return false;
	return true;
}

enum { PATTERN_ELEMENTS = 16, BLOCK = 4096 /* elements that are converted beside the output */ };

static int64_t most_elements(const struct growth *growth)
{
	int64_t piece = kernel_piece(growth->call);
	return growth->move.converts && piece > BLOCK ? BLOCK : piece;
}

/* As many rows at a time as make a piece. */
static bool many_rows(struct growth *growth, const uint8_t *from, const struct npumem_dims *shape, int64_t between)
{
	const struct blocks_paths *paths = blocks_paths(growth->call->isa);
	int64_t row = shape->w * growth->bytes, gap = between * growth->bytes, pitch = row + gap;
	int64_t most = most_elements(growth) / (shape->w + between);
	uint8_t pattern[PATTERN_ELEMENTS * sizeof(float)], converted[BLOCK * sizeof(int16_t)];
	fill(pattern, growth->dtype, growth->value, PATTERN_ELEMENTS);
	for (int64_t h = 0, n; h < shape->h; h += n, growth->to += n * pitch) {
		n = shape->h - h < most ? shape->h - h : most;
		int64_t n_gaps = h + n < shape->h ? n : n - 1;
		const uint8_t *rows = growth->move.converts ? converted : from;
		if (growth->move.converts)
			elements_move_some(&growth->move, converted, from, n * shape->w);
		from += n * shape->w * growth->move.in_bytes;
		paths->copy(growth->to, rows, &(struct blocks){row, {n, 1}, {pitch, 0}, {row, 0}});
		if (gap && n_gaps)
			paths->fill(growth->to + row, &(struct blocks){gap, {n_gaps, 1}, {pitch, 0}, {0, 0}},
				    pattern);
		if (!kernel_step_rarely(growth->call, n * shape->w + n_gaps * between, &growth->pending))
			return false;
	}
	growth->to -= gap;
	return true;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	const struct npumem_dims *shape = &in->shape;
	struct growth growth = {.call = call,
				.dtype = out->dtype,
				.bytes = npumem_dtype_bytes(out->dtype),
				.value = kernel_param(call, NPUMEM_PARAM_VALUE, 0, 0)};
	int64_t sides[SIDES];
	for (unsigned i = 0; i < SIDES; i++)
		sides[i] = kernel_param(call, NPUMEM_PARAM_PADDING, i, 0);
	int64_t between = sides[RIGHT] + sides[LEFT];
	call->counts = (struct kernel_counts){.saturated = 0};
	elements_move_init(&growth.move, call, in, out);
	bool many = shape->w + between <= most_elements(&growth);
	for (int64_t feature = 0; feature < shape->n * shape->c; feature++) {
		const uint8_t *from = kernel_feature(in, feature / shape->c, feature % shape->c);
		growth.to = kernel_feature(out, feature / shape->c, feature % shape->c);
		if (!pad(&growth, sides[TOP] * out->shape.w + sides[LEFT]) ||
		    !(many ? many_rows : row_by_row)(&growth, from, shape, between) ||
		    !pad(&growth, sides[RIGHT] + sides[BOTTOM] * out->shape.w))
			return;
	}
	kernel_step(call, growth.pending);
}

static int64_t steps(const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	double features = (double)(in->shape.n * in->shape.c), rows = features * (double)in->shape.h;
	double elements = steps_elements(out) * (1 + elements_are_converted(in, out));
	return steps_whole(elements / 2 + (rows + 2 * features) * STEPS_ROW / 2);
}

const struct kernel kernel_pad2d = {
	.number = NPUMEM_KERNEL_PAD2D,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.steps = steps,
	.run = run,
};
