/* Neighbouring dimensions that are both reduced, or both kept, are one to a dense array, as H and W are to a
 * feature: what is left is a few long rows. Each block of outputs is folded over all its rows while its results
 * are in the first cache. */
#include "daemon/device/kernel_support/reduce.h"

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_dims.h"
#include "daemon/device/kernel_support/steps.h"

enum { REDUCE_BLOCK = 1024 };
enum { REDUCE_N, REDUCE_C, REDUCE_ROW = ORDER_DIMS - 1 }; /* the last: the innermost dimension */

static void read_axes(const struct kernel_call *call, bool along[ORDER_DIMS])
{
	const struct npumem_param *axes = &call->params.given[NPUMEM_PARAM_AXES];
	for (int i = 0; i < ORDER_DIMS; i++)
		along[i] = axes->n_values == 0;
	for (unsigned i = 0; i < axes->n_values; i++)
		along[axes->values[i] - 1] = true;
}

static int check_axes(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_param *axes = &call->params.given[NPUMEM_PARAM_AXES];
	for (unsigned i = 0; i < axes->n_values; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (axes->values[i] != axes->values[k])
				continue;
			npumem_error_set(error, NPUMEM_INVALID, "%s: axes names %s twice", call->row->name,
					 order_dims_names[axes->values[i] - 1]);
			npumem_error_text(error, "parameter", "axes");
			return NPUMEM_INVALID;
		}
	}
	return 0;
}

int reduce_check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = operands_check_choices(call, error);
	if (!status)
		status = check_axes(call, error);
	if (!status)
		status = operands_check_fixed(call, REDUCE_IN, error);
	if (!status)
		status = operands_check_same_dtype(call, REDUCE_OUT, REDUCE_IN, error);
	if (status)
		return status;
	int64_t extents[ORDER_DIMS];
	bool along[ORDER_DIMS];
	order_dims_split(&operands_get(call, REDUCE_IN)->shape, extents);
	read_axes(call, along);
	for (int i = 0; i < ORDER_DIMS; i++)
		extents[i] = along[i] ? 1 : extents[i];
	struct npumem_dims want = order_dims_join(extents);
	return operands_check_shape(call, REDUCE_OUT, &want, "in and axes give", error);
}

struct reduce {
	const struct reduce_rule *rule;
	const struct kernel_operand *in;
	bool dense; /* else the first two dimensions are features */
	int64_t extents[ORDER_DIMS];
	bool along[ORDER_DIMS];
	int64_t n_kept, n_folded; /* rows of out; rows of in that one of them sees */
	int64_t terms;		  /* elements that one accumulator sees */
	struct requantize requantize;
};

static void reduce_init(struct reduce *r, const struct kernel_call *call, const struct reduce_rule *rule,
			bool dense)
{
	const struct kernel_operand *in = operands_get(call, REDUCE_IN), *out = operands_get(call, REDUCE_OUT);
	int64_t extents[ORDER_DIMS];
	bool along[ORDER_DIMS];
	*r = (struct reduce){
		.rule = rule, .in = in, .dense = dense, .extents = {1, 1, 1, 1}, .n_kept = 1, .n_folded = 1};
	order_dims_split(&in->shape, extents);
	read_axes(call, along);
	int to = REDUCE_ROW;
	r->along[to] = along[REDUCE_ROW];
	for (int i = REDUCE_ROW; i >= 0; i--) {
		if (!r->dense && i <= REDUCE_C)
			to = i;
		else if (extents[i] > 1 && r->extents[to] > 1 && along[i] != r->along[to])
			to--;
		if (extents[i] > 1)
			r->along[to] = along[i];
		r->extents[to] *= extents[i];
	}
	for (int i = 0; i < REDUCE_ROW; i++)
		*(r->along[i] ? &r->n_folded : &r->n_kept) *= r->extents[i];
	r->terms = r->n_folded * (r->along[REDUCE_ROW] ? r->extents[REDUCE_ROW] : 1);
	requantize_init(&r->requantize, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
}

/* Where the row lies that is number `folded` of those that row `kept` of out sees. */
static const uint8_t *row_at(const struct reduce *r, int64_t kept, int64_t folded)
{
	int64_t at = 0, stride = r->extents[REDUCE_ROW], index[ORDER_DIMS];
	for (int i = REDUCE_ROW - 1; i >= 0; i--) {
		int64_t *number = r->along[i] ? &folded : &kept;
		index[i] = *number % r->extents[i];
		*number /= r->extents[i];
		if (r->dense || i > REDUCE_C)
			at += index[i] * stride;
		stride *= r->extents[i];
	}
	const uint8_t *base = r->dense ? r->in->data : kernel_feature(r->in, index[REDUCE_N], index[REDUCE_C]);
	return base + at * r->requantize.bytes;
}

/* Of the rows that are folded into one: as many from number `folded` on as lie equally far apart, and how far, in
 * elements. */
static int64_t run_at(const struct reduce *r, int64_t folded, int64_t *apart)
{
	const struct kernel_features *f = &r->in->features;
	int64_t stride = r->extents[REDUCE_ROW];
	int i = REDUCE_ROW - 1;
	for (; i > 0 && r->extents[i] == 1; i--)
		;
	*apart = stride;
	if (!r->along[i])
		return 1;
	int64_t index = folded % r->extents[i], left = r->extents[i] - index;
	if (r->dense || i > REDUCE_C)
		return left;
	*apart = (i == REDUCE_C ? f->lane_bytes : f->n_bytes) / r->requantize.bytes;
	if (i == REDUCE_N || *apart * r->requantize.bytes != f->lane_bytes)
		return i == REDUCE_N ? left : 1;
	/* Up to where the channels come round to the first NPU again. */
	int64_t end = f->n_npus - (f->start_npu + index) % f->n_npus;
	return left < end ? left : end;
}

/* A block of outputs on its way. */
struct reduce_block {
	int64_t n, results[REDUCE_BLOCK];
	int64_t folded, looked; /* elements of in, and those of them that were told */
};

static int64_t of_two(enum fold fold, int64_t a, int64_t b)
{
	return fold == FOLD_SUM ? a + b : a > b ? a : b;
}

/* `elements` more are folded. False where the rest is no longer wanted. */
static bool fold_part(const struct kernel_call *call, const struct reduce *r, struct reduce_block *block,
		      int64_t elements)
{
	block->folded += elements;
	if (block->folded - block->looked < kernel_piece(call))
		return true;
	block->looked = block->folded;
	return kernel_part(call, block->n, block->folded, block->n * r->terms);
}

/* Each folds what the block's outputs see, the first of which is output `first` of all; false where it is no
 * longer wanted. */

/* A row of in, and maybe others, make one output. */
static bool fold_across_rows(const struct kernel_call *call, const struct reduce *r, struct reduce_block *block,
			     int64_t first)
{
	enum fold fold = r->rule->fold;
	int64_t width = r->extents[REDUCE_ROW], piece = kernel_piece(call);
	for (int64_t i = 0; i < block->n; i++)
		for (int64_t folded = 0; folded < r->n_folded; folded++) {
			const uint8_t *at = row_at(r, first + i, folded);
			for (int64_t x = 0; x < width; x += piece) {
				int64_t count = width - x < piece ? width - x : piece;
				const struct fold_rows row = {at + x * r->requantize.bytes, r->requantize.bytes,
							      width, 1};
				block->results[i] =
					of_two(fold, block->results[i], fold_across(fold, call->isa, &row, count));
				if (!fold_part(call, r, block, count))
					return false;
			}
		}
	return true;
}

/* Outputs are columns: of rows that lie behind each other, as many at a time as make a piece. */
static bool fold_down_columns(const struct kernel_call *call, const struct reduce *r, struct reduce_block *block,
			      int64_t first)
{
	int64_t width = r->extents[REDUCE_ROW], most = kernel_piece(call) / block->n + 1, step;
	unsigned bytes = r->requantize.bytes;
	enum fold fold = r->rule->fold;
	for (int64_t folded = 0; folded < r->n_folded; folded += step) {
		int32_t part[REDUCE_BLOCK];
		int64_t apart, run = run_at(r, folded, &apart);
		step = run < most ? run : most;
		const struct fold_rows rows = {row_at(r, first / width, folded) + first % width * bytes, bytes,
					       apart, step};
		fold_columns(fold, call->isa, &rows, sizeof(*part), block->n, part);
		for (int64_t i = 0; i < block->n; i++)
			block->results[i] = folded ? of_two(fold, block->results[i], part[i]) : part[i];
		if (!fold_part(call, r, block, step * block->n))
			return false;
	}
	return true;
}

/* Outputs at a time: where they are columns, not more than have all their rows in one piece. */
static int64_t block_of(const struct kernel_call *call, const struct reduce *r)
{
	enum { COLUMNS_MIN = 256 };
	int64_t most = kernel_piece(call) / r->n_folded;
	if (r->along[REDUCE_ROW] || most > REDUCE_BLOCK)
		return REDUCE_BLOCK;
	return most > COLUMNS_MIN ? most : COLUMNS_MIN;
}

/* How often rows are folded down for one block of outputs. */
static double folds_down(const struct kernel_call *call, const struct reduce *r, int64_t block)
{
	int64_t apart, most = kernel_piece(call) / block + 1, run;
	if (r->dense)
		run = run_at(r, 0, &apart);
	else /* of features, how far they lie apart is not known yet */
		run = r->along[REDUCE_ROW - 1] ? r->extents[REDUCE_ROW - 1] : 1;
	run = run < most ? run : most;
	return (double)(r->n_folded / run + 1);
}

int64_t reduce_steps(const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, REDUCE_IN);
	struct reduce r;
	reduce_init(&r, call, NULL, !steps_has_features(in));
	double rows = (double)r.n_kept * (double)r.n_folded, elements = steps_elements(in);
	int64_t width = r.extents[REDUCE_ROW], most = block_of(call, &r);
	if (!r.along[REDUCE_ROW]) {
		int64_t block = width < most ? width : most;
		rows = (double)r.n_kept * (double)(width / block + 1) * folds_down(call, &r, block);
	}
	double outputs = steps_elements(operands_get(call, REDUCE_OUT));
	return steps_whole(elements + rows * STEPS_ROW + outputs * 4);
}

void reduce_run(struct kernel_call *call, const struct reduce_rule *rule)
{
	struct reduce r;
	reduce_init(&r, call, rule, operands_get(call, REDUCE_IN)->data != NULL);
	call->counts = (struct kernel_counts){.saturated = 0};
	bool one = r.along[REDUCE_ROW]; /* a row of in gives one element of out */
	int64_t width = one ? r.n_kept : r.extents[REDUCE_ROW], outputs = one ? r.n_kept : r.n_kept * width;
	uint8_t *out = operands_get(call, REDUCE_OUT)->data;
	int64_t most = block_of(call, &r), start = fold_start(rule->fold);
	struct reduce_block block;
	for (int64_t first = 0; first < outputs; first += block.n) {
		int64_t left = width - first % width;
		block.n = left < most ? left : most;
		block.folded = block.looked = 0;
		for (int64_t i = 0; i < block.n; i++)
			block.results[i] = start;
		if (!(one ? fold_across_rows : fold_down_columns)(call, &r, &block, first))
			return;
		if (rule->close)
			rule->close(call, block.results, block.n, r.terms);
		call->counts.saturated +=
			requantize_row64(&r.requantize, block.results, block.n, out + first * r.requantize.bytes);
		if (!kernel_step(call, block.n))
			return;
	}
}
