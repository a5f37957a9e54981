/* The list behind claim.h. A root's record knows its place in the claim that is being made, by the claim's stamp.
 */
#include "daemon/rpc/order/claim.h"

#include <errno.h>

#include "daemon/service/record.h"

static uint64_t new_stamp(void)
{
	static uint64_t stamps;

	return ++stamps;
}

void claim_init(struct claim *claim, const struct heap *heap)
{
	claim->heap = heap;
	claim->accesses = claim->few;
	claim->n = 0;
	claim->room = CLAIM_FEW;
	claim->stamp = new_stamp();
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
		access->looks = false;
		access->writes |= writes;
		access->footprint |= footprint;
		return 0;
	}
	if (claim->n == claim->room && grow(claim))
		return -ENOMEM;
	record->claim_stamp = claim->stamp;
	record->claim_at = (uint32_t)claim->n;
	claim->accesses[claim->n++] =
		(struct scheduler_access){.root = root, .range = range, .writes = writes, .footprint = footprint};
	return 0;
}

static void merge_into(struct scheduler_access *access, const struct scheduler_access *other)
{
	widen(&access->range, &other->range);
	access->writes |= other->writes;
	access->footprint |= other->footprint;
	access->frees |= other->frees;
	access->looks &= other->looks;
}

bool claim_merge(struct claim *claim)
{
	size_t n = claim->n;

	claim->stamp = new_stamp();
	claim->n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct scheduler_access *access = &claim->accesses[i];
		struct record *record = record_of(access->root);

		if (record->claim_stamp == claim->stamp) {
			merge_into(&claim->accesses[record->claim_at], access);
			continue;
		}
		record->claim_stamp = claim->stamp;
		record->claim_at = (uint32_t)claim->n;
		claim->accesses[claim->n++] = *access;
	}
	return claim->n < n;
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

int claim_look(struct claim *claim, struct tensor *tensor)
{
	size_t n = claim->n;

	if (add(claim, tensor, false, false))
		return -ENOMEM;
	if (claim->n > n) {
		claim->accesses[n].looks = true;
		claim->accesses[n].range = (struct tensor_range){.from = {0, 0, 0, 0}, .to = {0, 0, 0, 0}};
	}
	return 0;
}

/* Where others may lie in the footprint the kernel will be refused: it keeps nobody waiting. */
static bool may_destroy(const struct tensor *root)
{
	return !root->dma_only && !root->sealed;
}

int claim_op(struct claim *claim, const struct op *op)
{
	struct op_access accesses[OP_ACCESSES_MAX];
	unsigned n = op_accesses(op, accesses);

	for (unsigned i = 0; i < n; i++) {
		bool writes = accesses[i].writes;

		if (add(claim, accesses[i].tensor, writes,
			writes && op->kind == OP_RUN && may_destroy(tensor_root(accesses[i].tensor))))
			return -ENOMEM;
	}
	return 0;
}
