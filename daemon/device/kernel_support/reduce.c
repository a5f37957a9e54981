/* Neighbouring dimensions that are both reduced, or both kept, are one to a dense array: what is left is a few
 * long rows. Each block of outputs is folded over all its rows while its accumulators are in the first cache. */
#include "daemon/device/kernel_support/reduce.h"

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/kernel_support/elements.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/order_dims.h"

enum { REDUCE_BLOCK = 256 };
enum { REDUCE_ROW = ORDER_DIMS - 1 }; /* the innermost dimension */

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
	int dtype;
	const void *in;
	int64_t extents[ORDER_DIMS];
	bool along[ORDER_DIMS];
	int64_t n_kept, n_folded; /* rows of out; rows of in that one of them sees */
	int64_t terms;		  /* elements that one accumulator sees */
	struct requantize requantize;
};

static void reduce_init(struct reduce *r, const struct kernel_call *call, const struct reduce_rule *rule)
{
	const struct kernel_operand *in = operands_get(call, REDUCE_IN), *out = operands_get(call, REDUCE_OUT);
	int64_t extents[ORDER_DIMS];
	bool along[ORDER_DIMS];
	*r = (struct reduce){.rule = rule,
			     .dtype = in->dtype,
			     .in = in->data,
			     .extents = {1, 1, 1, 1},
			     .n_kept = 1,
			     .n_folded = 1};
	order_dims_split(&in->shape, extents);
	read_axes(call, along);
	int to = REDUCE_ROW;
	r->along[to] = along[REDUCE_ROW];
	for (int i = REDUCE_ROW; i >= 0; i--) {
		if (extents[i] > 1 && r->extents[to] > 1 && along[i] != r->along[to])
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
static int64_t row_at(const struct reduce *r, int64_t kept, int64_t folded)
{
	int64_t at = 0, stride = r->extents[REDUCE_ROW];
	for (int i = REDUCE_ROW - 1; i >= 0; i--) {
		int64_t *number = r->along[i] ? &folded : &kept;
		at += *number % r->extents[i] * stride;
		*number /= r->extents[i];
		stride *= r->extents[i];
	}
	return at;
}

/* A block of outputs on its way. */
struct reduce_block {
	int64_t n, accumulators[REDUCE_BLOCK];
	int64_t folded, looked; /* elements of in, and those of them that were told */
};

/* Elements [at, at + n) of in: into one accumulator where step is 0, else (n fits a block) one into each. False
 * where the rest is no longer wanted. */
static bool fold_elements(const struct kernel_call *call, const struct reduce *r, struct reduce_block *block,
			  int64_t step, int64_t at, int64_t n)
{
	int32_t values[REDUCE_BLOCK];
	int64_t piece = kernel_piece(call);
	for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {
		int64_t count = n - i < REDUCE_BLOCK ? n - i : REDUCE_BLOCK;
		elements_load32(r->dtype, r->in, at + i, count, values);
		r->rule->fold(block->accumulators, step, values, count);
		block->folded += count;
		if (block->folded - block->looked < piece)
			continue;
		block->looked = block->folded;
		if (!kernel_part(call, block->n, block->folded, block->n * r->terms))
			return false;
	}
	return true;
}

void reduce_run(struct kernel_call *call, const struct reduce_rule *rule)
{
	struct reduce r;
	reduce_init(&r, call, rule);
	call->counts = (struct kernel_counts){.saturated = 0};
	bool one = r.along[REDUCE_ROW]; /* a row of in gives one element of out */
	int64_t width = one ? 1 : r.extents[REDUCE_ROW];
	uint8_t *out = operands_get(call, REDUCE_OUT)->data;
	for (int64_t kept = 0; kept < r.n_kept; kept++) {
		for (int64_t w = 0; w < width; w += REDUCE_BLOCK) {
			int64_t n = width - w < REDUCE_BLOCK ? width - w : REDUCE_BLOCK;
			struct reduce_block block;
			block.n = n;
			block.folded = block.looked = 0;
			for (int64_t i = 0; i < n; i++)
				block.accumulators[i] = rule->start;
			for (int64_t folded = 0; folded < r.n_folded; folded++)
				if (!fold_elements(call, &r, &block, one ? 0 : 1, row_at(&r, kept, folded) + w,
						   one ? r.extents[REDUCE_ROW] : n))
					return;
			if (rule->close)
				rule->close(call, block.accumulators, n, r.terms);
			call->counts.saturated += requantize_row64(&r.requantize, block.accumulators, n, out);
			out += n * r.requantize.bytes;
			if (!kernel_step(call, n))
				return;
		}
	}
}
