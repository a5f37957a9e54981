/* Which operations may not run at once. Told byte by byte, whatever the strides; what two operations are sure not
 * to share is passed by: no byte is data of two tensors with storage of their own, so that between those only the
 * footprint of a kernel's output can be in the way. */
#include <inttypes.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/operations/op_rule.h"

/* Work between two looks whether a check is still wanted, less than a millisecond. */
enum { STEPS_PER_LOOK = 1000 };

/* The first range that two of them share. */
struct where {
	struct tensor *a, *b;
	int64_t npu, offset, bytes;
};

struct comparison {
	const struct npumem_geometry *geometry;
	struct kernel_progress *progress; /* NULL: it cannot be cancelled */
	int64_t steps;			  /* until the next look */
	bool cancelled;
};

/* False where the rest is not wanted any more. */
static bool go_on(struct comparison *comparison)
{
	comparison->steps = STEPS_PER_LOOK;
	comparison->cancelled |= !kernel_wanted(comparison->progress);
	return !comparison->cancelled;
}

static bool never_meet(const struct op_access *a, const struct op_access *b)
{
	return !(a->writes || b->writes) || (a->kinds == KINDS_DATA && b->kinds == KINDS_DATA &&
					     tensor_root(a->tensor) != tensor_root(b->tensor));
}

static bool accesses_meet(struct comparison *comparison, const struct op_access *a, const struct op_access *b,
			  struct where *where)
{
	struct intersect walk;
	struct intersect_range range;
	enum intersect_answer answer;
	if (never_meet(a, b))
		return false;
	intersect_begin(&walk, comparison->geometry, TENSOR_PLACE(a->tensor), a->kinds, TENSOR_PLACE(b->tensor),
			b->kinds);
	while ((answer = intersect_step(&walk, &comparison->steps, &range)) == INTERSECT_PAUSE)
		if (!go_on(comparison))
			return false;
	if (answer == INTERSECT_END)
		return false;
	*where = (struct where){a->tensor, b->tensor, range.npu, range.offset, range.bytes};
	return true;
}

static bool compare(struct comparison *comparison, const struct op *a, const struct op *b, struct where *where)
{
	struct op_access a_accesses[OP_ACCESSES_MAX], b_accesses[OP_ACCESSES_MAX];
	unsigned a_n = op_accesses(a, a_accesses), b_n = op_accesses(b, b_accesses);
	for (unsigned i = 0; i < a_n; i++)
		for (unsigned j = 0; j < b_n && !comparison->cancelled; j++)
			if (accesses_meet(comparison, &a_accesses[i], &b_accesses[j], where))
				return true;
	return false;
}

static int refuse_group(const struct op *a, const struct op *b, unsigned a_index, unsigned b_index,
			const struct where *where, const struct error_context *context)
{
	char first[OP_DESCRIPTION_BYTES], second[OP_DESCRIPTION_BYTES], name[ERROR_CONTEXT_NAME_BYTES];
	op_describe(a, context, first, sizeof(first));
	op_describe(b, context, second, sizeof(second));
	npumem_error_set(context->error, NPUMEM_ABORTED,
			 "operations %u (%s) and %u (%s) of one group conflict on NPU %" PRId64 ", bytes %" PRId64
			 " to %" PRId64 "; nothing of the group ran",
			 a_index, first, b_index, second, where->npu, where->offset,
			 where->offset + where->bytes - 1);
	npumem_error_number(context->error, "first", a_index);
	npumem_error_number(context->error, "second", b_index);
	npumem_error_text(context->error, "first_tensor", error_context_name(context, where->a, name));
	npumem_error_text(context->error, "second_tensor", error_context_name(context, where->b, name));
	npumem_error_number(context->error, "npu", where->npu);
	npumem_error_number(context->error, "offset", where->offset);
	npumem_error_number(context->error, "bytes", where->bytes);
	return NPUMEM_ABORTED;
}

int op_group_check(struct device *device, struct op *const *ops, unsigned n, unsigned base,
		   const struct error_context *context)
{
	/* Of a pair whose offsets do not meet, some 10 ns for each two accesses. */
	enum { STEPS_PER_PAIR = 1 };
	struct comparison comparison = {.geometry = &device->options.geometry, .steps = STEPS_PER_LOOK};
	struct where where;
	for (unsigned j = 1; j < n; j++) {
		comparison.progress = ops[j]->progress;
		for (unsigned i = 0; i < j; i++) {
			if (op_queue(ops[i]) == op_queue(ops[j]))
				continue;
			if (compare(&comparison, ops[i], ops[j], &where))
				return refuse_group(ops[i], ops[j], base + i, base + j, &where, context);
			comparison.steps -= STEPS_PER_PAIR;
			if (comparison.cancelled || (comparison.steps <= 0 && !go_on(&comparison)))
				return npumem_error_set(
					context->error, NPUMEM_CANCELLED,
					"the group was cancelled before it began; nothing of it ran");
		}
	}
	return 0;
}

/* Of so many pairs of accesses the comparison is long, however short each of them is. */
enum { PAIRS_MOST = 500 };

/* What the walks of those pairs take that may share bytes. */
static int64_t walks_cost(struct op *const *ops, unsigned n)
{
	struct op_access kernels[PAIRS_MOST], dma[OP_ACCESSES_MAX];
	unsigned n_kernels = 0;
	int64_t cost = 0;
	for (unsigned i = 0; i < n; i++)
		if (op_queue(ops[i]) == OP_COMPUTE)
			n_kernels += op_accesses(ops[i], kernels + n_kernels);
	for (unsigned i = 0; i < n; i++) {
		unsigned n_dma = op_queue(ops[i]) == OP_DMA ? op_accesses(ops[i], dma) : 0;
		for (unsigned k = 0; k < n_dma * n_kernels; k++) {
			const struct op_access *a = &dma[k / n_kernels], *b = &kernels[k % n_kernels];
			if (!never_meet(a, b))
				cost += op_alias_cost(a->tensor, b->tensor);
		}
	}
	return cost;
}

int64_t op_group_cost(struct op *const *ops, unsigned n)
{
	/* Of a pair of accesses, as measured: 0.2 us where offsets meet. */
	enum { PAIR_COST = 400 };
	int64_t accesses[2] = {0, 0}, pairs;
	struct op_access all[OP_ACCESSES_MAX];
	for (unsigned i = 0; i < n; i++)
		accesses[op_queue(ops[i])] += op_accesses(ops[i], all);
	pairs = accesses[OP_DMA] * accesses[OP_COMPUTE];
	return pairs * PAIR_COST + (pairs > 0 && pairs <= PAIRS_MOST ? walks_cost(ops, n) : 0);
}
