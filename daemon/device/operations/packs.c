/* A table of small sets. Its lock is held for as long as it takes to look at a set, or at all packs where room is
 * made; who finds it taken for long does without. Packs that somebody uses stay until they are done with. */
#include "daemon/device/operations/packs.h"

#include <assert.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/tensors/tensor.h"

enum { TRIES = 1000 };

struct pack {
	struct pack_key key;
	size_t bytes; /* of host memory */
	uint64_t used;
	bool kept;
	_Atomic unsigned n_users; /* rises under the lock only */
};

void packs_init(struct packs *packs, const struct heap *heap, uint64_t budget_bytes)
{
	*packs = (struct packs){.heap = heap, .budget_bytes = budget_bytes};
	atomic_flag_clear(&packs->lock);
}

void packs_deinit(struct packs *packs)
{
	for (unsigned set = 0; set < PACKS_SETS; set++)
		for (unsigned way = 0; way < PACKS_WAYS; way++)
			heap_free(packs->heap, packs->sets[set][way]);
}

static bool try_lock(struct packs *packs)
{
	for (unsigned i = 0; i < TRIES; i++)
		if (!atomic_flag_test_and_set_explicit(&packs->lock, memory_order_acquire))
			return true;
	return false;
}

static void unlock(struct packs *packs)
{
	atomic_flag_clear_explicit(&packs->lock, memory_order_release);
}

void packs_key(struct pack_key *key, const struct kernel_call *call, const struct tensor *tensor)
{
	assert(call->n_roles <= PACKS_ROLES);
	const struct tensor *root = tensor_root(tensor);
	memset(key, 0, sizeof(*key));
	key->handle = root->handle;
	key->version = atomic_load_explicit(&root->version, memory_order_relaxed);
	key->place = tensor->place;
	key->kernel = call->row->number;
	key->isa = call->isa;
	key->params = call->params;
	for (unsigned i = 0; i < call->n_roles; i++)
		if (call->roles[i].n > 0) {
			key->roles[i].dtype = call->roles[i].operands[0].dtype;
			key->roles[i].shape = call->roles[i].operands[0].shape;
		}
}

static bool same_params(const struct kernel_params *a, const struct kernel_params *b)
{
	for (unsigned i = 0; i < NPUMEM_PARAMS_MAX; i++) {
		const struct npumem_param *x = &a->given[i], *y = &b->given[i];
		if (x->n_values != y->n_values || memcmp(x->values, y->values, x->n_values * sizeof(x->values[0])))
			return false;
	}
	return true;
}

static bool same_key(const struct pack_key *a, const struct pack_key *b)
{
	if (a->handle != b->handle || a->version != b->version || a->kernel != b->kernel || a->isa != b->isa ||
	    a->place.layout != b->place.layout || !intersect_same(&a->place, &b->place))
		return false;
	for (unsigned i = 0; i < PACKS_ROLES; i++)
		if (a->roles[i].dtype != b->roles[i].dtype ||
		    memcmp(&a->roles[i].shape, &b->roles[i].shape, sizeof(a->roles[i].shape)))
			return false;
	return same_params(&a->params, &b->params);
}

size_t packs_bytes(size_t bytes)
{
	return sizeof(struct pack) + PACKS_ALIGN + bytes;
}

struct pack *packs_new(struct packs *packs, const struct pack_key *key, size_t bytes)
{
	struct pack *pack = heap_alloc(packs->heap, packs_bytes(bytes));
	if (!pack)
		return NULL;
	*pack = (struct pack){.key = *key, .bytes = packs_bytes(bytes), .n_users = 1};
	return pack;
}

void *pack_data(struct pack *pack)
{
	uintptr_t end = (uintptr_t)(pack + 1);
	return (void *)((end + PACKS_ALIGN - 1) / PACKS_ALIGN * PACKS_ALIGN);
}

static struct pack **set_of(struct packs *packs, const struct pack_key *key)
{
	uint64_t hash = key->handle * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)key->place.address;
	return packs->sets[(hash ^ hash >> 32) % PACKS_SETS];
}

struct pack *packs_find(struct packs *packs, const struct pack_key *key)
{
	struct pack *found = NULL, **set = set_of(packs, key);
	if (!packs->budget_bytes || !try_lock(packs))
		return NULL;
	for (unsigned way = 0; way < PACKS_WAYS && !found; way++)
		if (set[way] && same_key(&set[way]->key, key))
			found = set[way];
	if (found) {
		atomic_fetch_add_explicit(&found->n_users, 1, memory_order_relaxed);
		found->used = ++packs->clock;
	}
	unlock(packs);
	return found;
}

/* Of `n` places the one that is empty, or whose pack nobody uses and was not used for longest; NULL: none. */
static struct pack **find_oldest(struct pack **places, unsigned n, bool empty)
{
	struct pack **oldest = NULL;
	for (unsigned i = 0; i < n; i++) {
		if (!places[i]) {
			if (empty)
				return &places[i];
		} else if (!atomic_load_explicit(&places[i]->n_users, memory_order_acquire) &&
			   (!oldest || places[i]->used < (*oldest)->used)) {
			oldest = &places[i];
		}
	}
	return oldest;
}

static struct pack *take_out(struct packs *packs, struct pack **place)
{
	struct pack *pack = *place;
	*place = NULL;
	if (pack)
		atomic_fetch_sub_explicit(&packs->bytes, pack->bytes, memory_order_relaxed);
	return pack;
}

/* Puts the pack in where it can, with no more than one other taken out of its set and one of all for room. Returns
 * whether it is in, or is to be tried again. */
enum outcome { IN, OUT, AGAIN };
static enum outcome put(struct packs *packs, struct pack *pack, struct pack **gone)
{
	struct pack **place = find_oldest(set_of(packs, &pack->key), PACKS_WAYS, true);
	if (!place || pack->bytes > packs->budget_bytes)
		return OUT;
	if (*place) {
		*gone = take_out(packs, place);
		return AGAIN;
	}
	if (packs->bytes + pack->bytes > packs->budget_bytes) {
		place = find_oldest(&packs->sets[0][0], PACKS_SETS * PACKS_WAYS, false);
		*gone = place ? take_out(packs, place) : NULL;
		return place ? AGAIN : OUT;
	}
	*place = pack;
	pack->kept = true;
	pack->used = ++packs->clock;
	atomic_fetch_add_explicit(&packs->bytes, pack->bytes, memory_order_relaxed);
	return IN;
}

void packs_keep(struct packs *packs, struct pack *pack)
{
	enum outcome outcome = AGAIN;
	while (outcome == AGAIN) {
		struct pack *gone = NULL;
		if (!packs->budget_bytes || !try_lock(packs))
			return;
		outcome = put(packs, pack, &gone);
		unlock(packs);
		heap_free(packs->heap, gone);
	}
}

void packs_done(struct packs *packs, struct pack *pack)
{
	if (!pack)
		return;
	if (pack->kept)
		atomic_fetch_sub_explicit(&pack->n_users, 1, memory_order_release);
	else
		heap_free(packs->heap, pack);
}
