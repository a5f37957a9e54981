/* The lists behind claim.h. What a binding points to stays good, as a request that waits has an access to each of
 * its tensors. A tensor's record knows its place in the claim that is being made, by the claim's stamp.
 */
#include "daemon/rpc/order/claim.h"

#include <errno.h>

#include "daemon/device/least.h"
#include "daemon/service/tables.h"
#include "daemon/service/tensors/record.h"

/* ---- what was found ---- */

void binding_init(struct binding *binding, const struct session *session)
{
	binding->session = session;
	binding->tensors = binding->few;
	binding->needs = binding->few_needs;
	binding->n = binding->at = 0;
	binding->room = BINDING_FEW;
	binding->is_bound = false;
	binding->going = NULL;
}

void binding_deinit(struct binding *binding)
{
	if (binding->tensors != binding->few)
		heap_free(binding->session->service->heap, binding->tensors);
	binding->tensors = binding->few;
	binding->needs = binding->few_needs;
}

void binding_restart(struct binding *binding)
{
	binding->n = 0;
	binding->going = NULL;
}

bool binding_is_unchanged(const struct binding *binding, uint64_t since)
{
	enum { AHEAD = 12 };

	for (size_t i = 0; i < binding->n; i++) {
		if (i + AHEAD < binding->n)
			record_prefetch(binding->tensors[i + AHEAD]);
		if (!record_is_unchanged(binding->tensors[i], since))
			return false;
	}
	return true;
}

void binding_bind(struct binding *binding)
{
	binding->is_bound = true;
	binding->at = 0;
}

static int grow_binding(struct binding *binding)
{
	size_t room = 2 * binding->room;
	struct tensor **grown = heap_alloc(binding->session->service->heap, room * (sizeof(*grown) + 1));
	uint8_t *needs = (uint8_t *)(grown + room);

	if (!grown)
		return -1;
	memcpy(grown, binding->tensors, binding->n * sizeof(*grown));
	memcpy(needs, binding->needs, binding->n);
	binding_deinit(binding);
	binding->tensors = grown;
	binding->needs = needs;
	binding->room = room;
	return 0;
}

static int add_found(struct binding *binding, struct tensor *tensor, enum access_need need)
{
	if (binding->n == binding->room && grow_binding(binding))
		return -1;
	binding->needs[binding->n] = (uint8_t)need;
	binding->tensors[binding->n++] = tensor;
	return 0;
}

int binding_find(struct binding *binding, const Npumem__V1__Ref *ref, const char *what, enum access_need need,
		 struct tensor **tensor, struct npumem_error *error)
{
	struct access_ref to;
	int status;

	if (binding->is_bound) {
		*tensor = binding->tensors[binding->at++];
		return 0;
	}
	if (!ref)
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not given", what);
	to = (struct access_ref){ref->handle, ref->name};
	status = access_find(binding->session, &to, need, tensor, error);
	if (status == NPUMEM_NOT_FOUND)
		binding->going = *tensor;
	if (!status && add_found(binding, *tensor, need))
		status = heap_exhausted(error);
	return status;
}

int binding_check(const struct binding *binding, struct npumem_error *error)
{
	int status = 0;

	for (size_t i = 0; i < binding->n && !status; i++)
		status = access_check(binding->session, binding->tensors[i], (enum access_need)binding->needs[i],
				      error);
	return status;
}

/* ---- what is accessed ---- */

void claim_restart(struct claim *claim)
{
	static uint64_t stamps;

	claim->n = 0;
	claim->stamp = ++stamps;
}

void claim_init(struct claim *claim, const struct heap *heap)
{
	claim->heap = heap;
	claim->accesses = claim->few;
	claim->room = CLAIM_FEW;
	claim_restart(claim);
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

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void widen(struct tensor_range *range, const struct tensor_range *by)
{
	struct npumem_dims *from = &range->from, *to = &range->to;

	*from = (struct npumem_dims){least(from->n, by->from.n), least(from->c, by->from.c),
				     least(from->h, by->from.h), least(from->w, by->from.w)};
	*to = (struct npumem_dims){most(to->n, by->to.n), most(to->c, by->to.c), most(to->h, by->to.h),
				   most(to->w, by->to.w)};
}

/* NULL without memory. */
static struct scheduler_access *add(struct claim *claim, struct tensor *tensor)
{
	if (claim->n == claim->room && grow(claim))
		return NULL;
	claim->accesses[claim->n] = (struct scheduler_access){.tensor = tensor, .needs_tensor = true};
	return &claim->accesses[claim->n++];
}

/* To the bytes of a root, none at first, or to a view itself. NULL without memory. */
static struct scheduler_access *access_to(struct claim *claim, struct tensor *tensor)
{
	struct record *record = record_of(tensor);
	struct scheduler_access *access;

	if (record->claim_stamp == claim->stamp)
		return &claim->accesses[record->claim_at];
	access = add(claim, tensor);
	if (!access)
		return NULL;
	record->claim_stamp = claim->stamp;
	record->claim_at = (uint32_t)claim->n - 1;
	return access;
}

static bool has_range(const struct scheduler_access *access)
{
	return access->range.to.n > 0;
}

/* To the bytes of a tensor or view. NULL without memory. */
static struct scheduler_access *add_bytes(struct claim *claim, struct tensor *tensor, bool writes)
{
	struct scheduler_access *access = access_to(claim, tensor_root(tensor));
	struct tensor_range range = tensor_range(tensor);

	if (!access)
		return NULL;
	if (has_range(access))
		widen(&access->range, &range);
	else
		access->range = range;
	access->needs_tensor = false;
	access->writes |= writes;
	return access;
}

/* Beside what a request does to a view's bytes: whether it changes the view itself. 0, or -ENOMEM. */
static int add_view(struct claim *claim, struct tensor *tensor, bool changes)
{
	struct scheduler_access *access = tensor->base ? access_to(claim, tensor) : NULL;

	if (tensor->base && !access)
		return -ENOMEM;
	if (tensor->base)
		access->frees |= changes;
	return 0;
}

static void merge_into(struct scheduler_access *access, const struct scheduler_access *other)
{
	if (!has_range(access))
		access->range = other->range;
	else if (has_range(other))
		widen(&access->range, &other->range);
	access->writes |= other->writes;
	access->footprint |= other->footprint;
	access->frees |= other->frees;
	access->needs_tensor &= other->needs_tensor;
}

bool claim_merge(struct claim *claim)
{
	size_t n = claim->n;

	claim_restart(claim);
	for (size_t i = 0; i < n; i++) {
		const struct scheduler_access *access = &claim->accesses[i];
		struct record *record = record_of(access->tensor);

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

int claim_tensor(struct claim *claim, struct tensor *tensor, enum claim_use use)
{
	bool changes = use >= CLAIM_CHANGE, has_bytes = use != CLAIM_EXISTS && !(tensor->base && changes);
	struct scheduler_access *access =
		has_bytes ? add_bytes(claim, tensor, changes) : access_to(claim, tensor_root(tensor));

	if (!access)
		return -ENOMEM;
	access->frees |= use == CLAIM_FREE && !tensor->base;
	return add_view(claim, tensor, changes);
}

int claim_made(struct claim *claim)
{
	return add(claim, NULL) ? 0 : -ENOMEM;
}

int claim_going(struct claim *claim, struct tensor *tensor)
{
	const struct record *record = record_of(tensor);
	bool goes_with_root = !record->is_going && !record->is_gone;

	return access_to(claim, goes_with_root ? tensor_root(tensor) : tensor) ? 0 : -ENOMEM;
}

/* Where others may lie in the footprint the kernel will be refused, and no request waits for it. */
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
		struct scheduler_access *access = add_bytes(claim, accesses[i].tensor, writes);

		if (!access)
			return -ENOMEM;
		access->footprint |= writes && op->kind == OP_RUN && may_destroy(access->tensor);
		if (add_view(claim, accesses[i].tensor, false))
			return -ENOMEM;
	}
	return 0;
}
