/* The list behind claim.h. A root's record knows its place in the claim that is being made, by the claim's stamp.
 */
#include "daemon/rpc/order/claim.h"

#include <errno.h>

#include "daemon/service/record.h"

void claim_init(struct claim *claim, const struct heap *heap)
{
	static uint64_t stamps;

	claim->heap = heap;
	claim->accesses = claim->few;
	claim->n = 0;
	claim->room = CLAIM_FEW;
	claim->stamp = ++stamps;
}

void claim_deinit(struct claim *claim)
{
	if (claim->accesses != claim->few)
		heap_free(claim->heap, claim->accesses);
	claim->accesses = claim->few;
}

static int grow(struct claim *claim)
{
	struct scheduler_access *grown = heap_alloc(claim->heap, 4 * claim->room * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	memcpy(grown, claim->accesses, claim->n * sizeof(*grown));
	claim_deinit(claim);
	claim->accesses = grown;
	claim->room *= 4;
	return 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What holds both. */
static void widen(struct tensor_range *range, const struct tensor_range *by)
{
	struct npumem_dims *from = &range->from, *to = &range->to;

	*from = (struct npumem_dims){least(from->n, by->from.n), least(from->c, by->from.c),
				     least(from->h, by->from.h), least(from->w, by->from.w)};
	*to = (struct npumem_dims){most(to->n, by->to.n), most(to->c, by->to.c), most(to->h, by->to.h),
				   most(to->w, by->to.w)};
}

static int add(struct claim *claim, struct tensor *tensor, bool writes, bool footprint)
{
	struct tensor *root = tensor_root(tensor);
	struct record *record = record_of(root);
	struct tensor_range range = tensor_range(tensor);
	struct scheduler_access *access;

	if (record->claim_stamp == claim->stamp) {
		access = &claim->accesses[record->claim_at];
		widen(&access->range, &range);
		access->writes |= writes;
		access->footprint |= footprint;
		return 0;
	}
	if (claim->n == claim->room && grow(claim))
		return -ENOMEM;
	record->claim_stamp = claim->stamp;
	record->claim_at = claim->n;
	claim->accesses[claim->n++] =
		(struct scheduler_access){.root = root, .range = range, .writes = writes, .footprint = footprint};
	return 0;
}

int claim_tensor(struct claim *claim, struct tensor *tensor, bool writes)
{
	return add(claim, tensor, writes, false);
}

int claim_free(struct claim *claim, struct tensor *tensor)
{
	if (add(claim, tensor, true, false))
		return -ENOMEM;
	claim->accesses[record_of(tensor_root(tensor))->claim_at].frees = true;
	return 0;
}

int claim_op(struct claim *claim, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	unsigned n = op_accesses(op, accesses);

	for (unsigned i = 0; i < n; i++) {
		bool writes = accesses[i].writes;

		if (add(claim, accesses[i].tensor, writes, writes && op->kind == OP_RUN))
			return -ENOMEM;
	}
	return 0;
}

void claim_all_written(struct claim *claim)
{
	for (size_t i = 0; i < claim->n; i++)
		claim->accesses[i].writes = claim->accesses[i].footprint = true;
}
