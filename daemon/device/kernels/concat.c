/* in0, in1, … one behind the other along axis; of any type. Of fx8 and fx16 each may have a format of its own. */
#include <stdio.h>

#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_dims.h"
#include "daemon/device/kernel_support/steps.h"

enum { IN, OUT };
enum { AXIS_N, AXIS_C, AXIS_H, AXIS_W };

static int check_axis(const struct kernel_call *call, struct npumem_error *error)
{
	if (order_dims_axis(call) != ORDER_DIMS_NONE)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: axis must be one of n, c, h, w", call->row->name);
	npumem_error_text(error, "parameter", "axis");
	return NPUMEM_INVALID;
}

/* `operand` against in0: type, and the extents along all dimensions but the axis. */
static int check_operand(const struct kernel_call *call, const char *name, struct kernel_operand *operand,
			 int64_t along_axis, const char *why, struct npumem_error *error)
{
	enum { FIRST, OTHER };
	struct kernel_role pair[] = {{"in0", 1, call->roles[IN].operands}, {name, 1, operand}};
	const struct kernel_call both = {.row = call->row, .roles = pair, .n_roles = 2};
	int64_t extents[ORDER_DIMS];
	int status = elements_check_move(&both, OTHER, FIRST, error);
	if (status)
		return status;
	order_dims_split(&pair[FIRST].operands->shape, extents);
	extents[order_dims_axis(call)] = along_axis;
	struct npumem_dims want = order_dims_join(extents);
	return operands_check_shape(&both, OTHER, &want, why, error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct kernel_role *in = &call->roles[IN];
	int64_t sum = 0;
	int status = check_axis(call, error);
	for (unsigned i = 0; i < in->n && !status; i++) {
		char name[NPUMEM_FIELD_KEY_BYTES];
		int64_t extents[ORDER_DIMS];
		order_dims_split(&in->operands[i].shape, extents);
		snprintf(name, sizeof(name), "in%u", i);
		sum += extents[order_dims_axis(call)];
		status = check_operand(call, name, &in->operands[i], extents[order_dims_axis(call)], "in0 has",
				       error);
	}
	return status ? status
		      : check_operand(call, "out", call->roles[OUT].operands, sum, "its inputs give", error);
}

/* Each false where the rest is no longer wanted. */

/* Where all operands are dense: an operand is as many runs as there are indices before the axis. */
static bool run_dense(const struct kernel_call *call, struct elements_move *moves, int64_t *pending)
{
	const struct kernel_role *in = &call->roles[IN];
	int axis = order_dims_axis(call);
	uint8_t *to = operands_get(call, OUT)->data;
	int64_t outer = order_dims_span(&in->operands[0].shape, axis).outer;
	for (int64_t o = 0; o < outer; o++)
		for (unsigned i = 0; i < in->n; i++) {
			struct order_span span = order_dims_span(&in->operands[i].shape, axis);
			int64_t n = span.extent * span.inner;
			const uint8_t *from = (const uint8_t *)in->operands[i].data + o * n * moves[i].in_bytes;
			if (!elements_move(&moves[i], to, from, n, pending))
				return false;
			to += n * moves[i].out_bytes;
		}
	return true;
}

/* One input, whose first index along the axis is `first` of out: feature by feature and, along W, row by row. */
static bool move_features(const struct kernel_call *call, const struct kernel_operand *in, int64_t first,
			  struct elements_move *move, int64_t *pending)
{
	const struct kernel_operand *out = operands_get(call, OUT);
	const struct npumem_dims *shape = &in->shape;
	int axis = order_dims_axis(call);
	int64_t rows = axis == AXIS_W ? shape->h : 1, length = shape->h * shape->w / rows;
	int64_t skip = axis == AXIS_W ? first : axis == AXIS_H ? first * shape->w : 0;
	for (int64_t n = 0; n < shape->n; n++)
		for (int64_t c = 0; c < shape->c; c++) {
			const uint8_t *from = kernel_feature(in, n, c);
			uint8_t *to = kernel_feature(out, n + (axis == AXIS_N ? first : 0),
						     c + (axis == AXIS_C ? first : 0));
			to += skip * move->out_bytes;
			for (int64_t r = 0; r < rows; r++) {
				if (!elements_move(move, to, from, length, pending))
					return false;
				from += length * move->in_bytes;
				to += out->shape.w * move->out_bytes;
			}
		}
	return true;
}

static bool is_dense(const struct kernel_call *call)
{
	const struct kernel_role *in = &call->roles[IN];
	bool dense = operands_get(call, OUT)->data != NULL;
	for (unsigned i = 0; i < in->n; i++)
		dense = dense && in->operands[i].data != NULL;
	return dense;
}

static bool run_features(const struct kernel_call *call, struct elements_move *moves, int64_t *pending)
{
	const struct kernel_role *in = &call->roles[IN];
	int64_t first = 0;
	for (unsigned i = 0; i < in->n; i++) {
		if (!move_features(call, &in->operands[i], first, &moves[i], pending))
			return false;
		first += order_dims_span(&in->operands[i].shape, order_dims_axis(call)).extent;
	}
	return true;
}

static void run(struct kernel_call *call)
{
	const struct kernel_role *in = &call->roles[IN];
	struct elements_move moves[NPUMEM_OPERANDS_MAX];
	int64_t pending = 0;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (unsigned i = 0; i < in->n; i++)
		elements_move_init(&moves[i], call, &in->operands[i], operands_get(call, OUT));
	if ((is_dense(call) ? run_dense : run_features)(call, moves, &pending))
		kernel_step(call, pending);
}

static int64_t steps(const struct kernel_call *call)
{
	const struct kernel_role *in = &call->roles[IN];
	const struct kernel_operand *out = operands_get(call, OUT);
	double rows = 0, elements = 0;
	for (unsigned i = 0; i < in->n; i++) {
		const struct npumem_dims *shape = &in->operands[i].shape;
		bool is_apart = order_dims_axis(call) == AXIS_W || order_dims_axis(call) == AXIS_H;
		rows += (double)(shape->n * (is_apart || steps_has_features(&in->operands[i]) ? shape->c : 1) *
				 (order_dims_axis(call) == AXIS_W ? shape->h : 1));
		elements += steps_elements(&in->operands[i]) * (1 + elements_are_converted(&in->operands[i], out));
	}
	return steps_whole(elements / 2 + rows * STEPS_ROW);
}

const struct kernel kernel_concat = {
	.number = NPUMEM_KERNEL_CONCAT,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.steps = steps,
	.run = run,
};
