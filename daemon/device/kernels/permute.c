/* Dimensions in another order: out dim i = in dim perm[i]; of any type. Three numbers permute C,H,W, 0 being C. */
#include <assert.h>

#include "daemon/device/fixed/rows/transpose.h"
#include "daemon/device/kernel_support/elementwise/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_dims.h"
#include "daemon/device/kernel_support/steps.h"

enum { IN, OUT };
enum { N, C, W = ORDER_DIMS - 1 }; /* W lies in one piece */

static int refuse(const struct kernel_call *call, const char *text, struct npumem_error *error)
{
	npumem_error_set(error, NPUMEM_INVALID, "%s: perm %s", call->row->name, text);
	npumem_error_text(error, "parameter", "perm");
	return NPUMEM_INVALID;
}

static int check_perm(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_param *perm = &call->params.given[NPUMEM_PARAM_PERM];
	bool seen[ORDER_DIMS] = {false};
	for (unsigned i = 0; i < perm->n_values; i++) {
		int status = operands_check_param(call, NPUMEM_PARAM_PERM, "", perm->values[i], 0,
						  (int64_t)perm->n_values - 1, error);
		if (status)
			return status;
		if (seen[perm->values[i]])
			return refuse(call, "names a dimension twice", error);
		seen[perm->values[i]] = true;
	}
	return 0;
}

/* The dimension of in that dimension i of out is. */
static void read_perm(const struct kernel_call *call, int64_t from[ORDER_DIMS])
{
	const struct npumem_param *perm = &call->params.given[NPUMEM_PARAM_PERM];
	unsigned kept = ORDER_DIMS - perm->n_values;
	for (unsigned i = 0; i < ORDER_DIMS; i++)
		from[i] = i < kept ? i : kept + perm->values[i - kept];
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int64_t from[ORDER_DIMS], extents[ORDER_DIMS], permuted[ORDER_DIMS];
	int status = check_perm(call, error);
	if (!status)
		status = operands_check_same_dtype(call, OUT, IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, OUT, IN, error);
	if (status)
		return status;
	read_perm(call, from);
	order_dims_split(&operands_get(call, IN)->shape, extents);
	for (int i = 0; i < ORDER_DIMS; i++)
		permuted[i] = extents[from[i]];
	struct npumem_dims want = order_dims_join(permuted);
	return operands_check_shape(call, OUT, &want, "in and perm give", error);
}

/* Of a part of out in which both operands are linear, in out's order: extents, and how far apart elements lie in
 * in and in out. */
struct walk {
	struct kernel_call *call;
	unsigned bytes;
	const uint8_t *from;
	uint8_t *to;
	int64_t extent[ORDER_DIMS], in_step[ORDER_DIMS], out_step[ORDER_DIMS];
	int64_t pending;
};

/* How far apart the elements of an operand lie along each of its dimensions, between two of its channels on its
 * last NPU. */
static void steps_of(const struct kernel_operand *operand, int64_t step[ORDER_DIMS])
{
	const struct kernel_features *f = &operand->features;
	int64_t bytes = npumem_dtype_bytes(operand->dtype);
	struct npumem_dims stride;
	npumem_continuous_stride(&operand->shape, &stride);
	order_dims_split(&stride, step);
	if (operand->data)
		return;
	step[N] = f->n_bytes / bytes;
	step[C] = f->lane_bytes / bytes;
}

/* The channels from c on whose features lie equally far apart. */
static int64_t linear_channels(const struct kernel_operand *operand, int64_t c)
{
	const struct kernel_features *f = &operand->features;
	int64_t left = operand->shape.c - c, end = f->n_npus - (f->start_npu + c) % f->n_npus;
	return operand->data || left < end ? left : end;
}

/* The part of out that has channels [in_c, in_c + n) of in and [out_c, out_c + m) of out; false where there is
 * none.
 */
static bool walk_part(struct walk *walk, const int64_t from[ORDER_DIMS], int64_t in_c, int64_t n, int64_t out_c,
		      int64_t m)
{
	const struct kernel_operand *in = operands_get(walk->call, IN), *out = operands_get(walk->call, OUT);
	int64_t step[ORDER_DIMS];
	steps_of(in, step);
	order_dims_split(&out->shape, walk->extent);
	for (int i = 0; i < ORDER_DIMS; i++) {
		walk->in_step[i] = step[from[i]];
		if (from[i] == C && i != C)
			walk->extent[i] = n;
	}
	steps_of(out, walk->out_step);
	if (from[C] == C) {
		int64_t end = in_c + n < out_c + m ? in_c + n : out_c + m;
		in_c = out_c = in_c > out_c ? in_c : out_c;
		m = end - in_c;
	}
	walk->extent[C] = m;
	if (m <= 0)
		return false;
	/* In in, out's first channel is an index of another dimension; in out, in's is. */
	walk->from = kernel_feature(in, 0, in_c);
	walk->to = kernel_feature(out, 0, out_c);
	for (int i = 0; i < ORDER_DIMS && from[C] != C; i++) {
		if (i == C)
			walk->from += out_c * walk->in_step[i] * walk->bytes;
		if (from[i] == C)
			walk->to += in_c * walk->out_step[i] * walk->bytes;
	}
	return true;
}

/* Where the last dimensions of out have one index each, the one before them takes W's place, if it lies in one
 * piece in both: its rows are copied as such. */
static void skip_single(struct walk *walk)
{
	int last = W;
	while (last > 0 && walk->extent[last] == 1)
		last--;
	if (last == W || walk->in_step[last] != 1 || walk->out_step[last] != 1)
		return;
	walk->extent[W] = walk->extent[last];
	walk->in_step[W] = walk->out_step[W] = walk->extent[last] = 1;
}

/* The dimension beside W in whose order in lies; W itself where in lies in W's order. Of a part it may have one
 * index, which is then a column of one. */
static int innermost(const struct walk *walk)
{
	int inner = W;
	if (walk->extent[W] == 1 || walk->in_step[W] == 1)
		return W;
	for (int i = 0; i < W; i++)
		if (walk->in_step[i] == 1 && (inner == W || walk->extent[i] > 1))
			inner = i;
	assert(inner < W);
	return inner;
}

/* Each copies all elements of out along `inner` and W that begin at `from` and `to`; false where the rest is no
 * longer wanted. */

static bool copy_row(struct walk *walk, const uint8_t *from, uint8_t *to)
{
	/* What is not in one piece has one element along W. */
	return elements_copy(walk->call, to, from, walk->extent[W], walk->bytes, &walk->pending);
}

static bool copy_plane(struct walk *walk, int inner, const uint8_t *from, uint8_t *to)
{
	/* Squares of some cache lines to a side, as many as make a piece. */
	enum { SIDE = 128 };
	int64_t n_rows = walk->extent[W], n_columns = walk->extent[inner];
	int64_t row = walk->in_step[W], column = walk->out_step[inner];
	int64_t side = SIDE;
	while (side > 1 && side * side > kernel_piece(walk->call))
		side /= 2;
	for (int64_t c = 0; c < n_columns; c += side)
		for (int64_t r = 0; r < n_rows; r += side) {
			int64_t high = n_rows - r < side ? n_rows - r : side;
			int64_t wide = n_columns - c < side ? n_columns - c : side;
			transpose(walk->call->isa, walk->bytes, from + (r * row + c) * walk->bytes, row, high,
				  wide, to + (c * column + r) * walk->bytes, column);
			if (!kernel_step_rarely(walk->call, high * wide, &walk->pending))
				return false;
		}
	return true;
}

static bool run_part(struct walk *walk)
{
	skip_single(walk);
	int inner = innermost(walk);
	int64_t ends[W];
	for (int d = 0; d < W; d++)
		ends[d] = d == inner ? 1 : walk->extent[d];
	for (int64_t n = 0; n < ends[0]; n++)
		for (int64_t c = 0; c < ends[1]; c++) {
			const uint8_t *from =
				walk->from + (n * walk->in_step[0] + c * walk->in_step[1]) * walk->bytes;
			uint8_t *to = walk->to + (n * walk->out_step[0] + c * walk->out_step[1]) * walk->bytes;
			for (int64_t h = 0; h < ends[2]; h++) {
				if (!(inner == W ? copy_row(walk, from, to) : copy_plane(walk, inner, from, to)))
					return false;
				from += walk->in_step[2] * walk->bytes;
				to += walk->out_step[2] * walk->bytes;
			}
		}
	return true;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	struct walk walk = {.call = call, .bytes = npumem_dtype_bytes(in->dtype)};
	int64_t from[ORDER_DIMS];
	read_perm(call, from);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (int64_t in_c = 0, n; in_c < in->shape.c; in_c += n) {
		n = linear_channels(in, in_c);
		for (int64_t out_c = 0, m; out_c < out->shape.c; out_c += m) {
			m = linear_channels(out, out_c);
			if (walk_part(&walk, from, in_c, n, out_c, m) && !run_part(&walk))
				return;
		}
	}
	kernel_step(call, walk.pending);
}

/* Of an operand: how many pieces its channels lie in. */
static double linear_pieces(const struct kernel_operand *operand)
{
	const struct kernel_features *f = &operand->features;
	if (!steps_has_features(operand))
		return 1;
	return (double)((f->start_npu % f->n_npus + operand->shape.c - 1) / f->n_npus + 1);
}

static int64_t steps(const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *out = operands_get(call, OUT);
	double elements = steps_elements(in), parts = linear_pieces(in) * linear_pieces(out);
	/* Rows of out that are copied, or those of a square that is turned; the channels of a part. */
	double rows = elements / (double)out->shape.w + parts * (double)out->shape.n;
	return steps_whole(elements * 2 + (rows + parts) * STEPS_ROW);
}

const struct kernel kernel_permute = {
	.number = NPUMEM_KERNEL_PERMUTE,
	.by_feature = 1 << IN | 1 << OUT,
	.check = check,
	.steps = steps,
	.run = run,
};
