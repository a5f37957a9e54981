/* A table of small sets. Its lock is held while one set is searched, or all accounts to make room. A run that does
 * not get the lock soon goes on without the pack. A pack is not freed while a run uses it. Invariant: a pack that
 * is kept is in a set, in its account's list and in those of its tensors. */
#include "daemon/device/operations/packs.h"

#include <assert.h>
#include <utlist.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/tensors/tensor.h"

enum { TRIES = 1000 };

/* In the list of one of the tensors that a pack is of. */
struct pack_of {
	struct pack *pack;
	struct tensor *root;
	struct pack_of *next, *prev;
};

struct pack {
	struct pack_key key;
	size_t bytes; /* of host memory */
	uint64_t used;
	bool kept;
	_Atomic unsigned n_users; /* rises under the lock only */
	struct pack_of of[PACKS_TENSORS];
	unsigned n;
	struct packs_account *account;
	struct pack *next, *prev; /* of the account's */
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

/* Waits for the lock: for callers that must have it. */
static void lock(struct packs *packs)
{
	while (atomic_flag_test_and_set_explicit(&packs->lock, memory_order_acquire))
		;
}

static void unlock(struct packs *packs)
{
	atomic_flag_clear_explicit(&packs->lock, memory_order_release);
}

static uint64_t version_of(const struct tensor *tensor)
{
	return atomic_load_explicit(&tensor_root(tensor)->version, memory_order_relaxed);
}

void packs_key(struct pack_key *key, const struct kernel_call *call, struct tensor *const *tensors, unsigned n)
{
	assert(call->n_roles <= PACKS_ROLES && n <= PACKS_TENSORS);
	memset(key, 0, sizeof(*key));
	for (unsigned i = 0; i < n; i++) {
		key->tensors[i].handle = tensor_root(tensors[i])->handle;
		key->tensors[i].version = version_of(tensors[i]);
		key->tensors[i].place = tensor_place(tensors[i]);
	}
	key->kernel = call->row->number;
	key->isa = call->isa;
	key->params = call->params;
	for (unsigned i = 0; i < call->n_roles; i++)
		if (call->roles[i].n > 0) {
			key->roles[i].dtype = call->roles[i].operands[0].dtype;
			key->roles[i].shape = call->roles[i].operands[0].shape;
		}
}

static bool same_key(const struct pack_key *a, const struct pack_key *b)
{
	if (a->kernel != b->kernel || a->isa != b->isa)
		return false;
	for (unsigned i = 0; i < PACKS_TENSORS; i++)
		if (a->tensors[i].handle != b->tensors[i].handle ||
		    a->tensors[i].version != b->tensors[i].version ||
		    a->tensors[i].place.layout != b->tensors[i].place.layout ||
		    !intersect_same(&a->tensors[i].place, &b->tensors[i].place))
			return false;
	for (unsigned i = 0; i < PACKS_ROLES; i++)
		if (a->roles[i].dtype != b->roles[i].dtype ||
		    memcmp(&a->roles[i].shape, &b->roles[i].shape, sizeof(a->roles[i].shape)))
			return false;
	return !memcmp(&a->params, &b->params, sizeof(a->params));
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
	uint64_t hash =
		key->tensors[0].handle * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)key->tensors[0].place.address;
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
		DL_DELETE(found->account->packs, found);
		DL_APPEND(found->account->packs, found);
	}
	unlock(packs);
	return found;
}

bool packs_is_current(const struct pack *pack, struct tensor *const *tensors, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (pack->key.tensors[i].version != version_of(tensors[i]))
			return false;
	return true;
}

static bool is_used(const struct pack *pack)
{
	return atomic_load_explicit(&pack->n_users, memory_order_acquire) > 0;
}

/* ---- room ---- */

/* How many of a set are the account's. */
static unsigned count(struct pack *const *set, const struct packs_account *account)
{
	unsigned n = 0;
	for (unsigned way = 0; way < PACKS_WAYS; way++)
		n += set[way] && set[way]->account == account;
	return n;
}

/* Where a set has room for the pack: an empty place, or that of the account which would have most places in it.
 * NULL: nowhere. */
static struct pack **find_place(struct pack **set, const struct pack *pack)
{
	struct pack **place = NULL;
	unsigned most = 0;
	for (unsigned way = 0; way < PACKS_WAYS; way++) {
		if (!set[way])
			return &set[way];
		unsigned n = count(set, set[way]->account) + (set[way]->account == pack->account);
		if (n > most)
			place = NULL;
		if (n >= most && !is_used(set[way]) && (!place || set[way]->used < (*place)->used))
			place = &set[way];
		most = n > most ? n : most;
	}
	return place;
}

/* Whose packs are to go where there is no room for the account's next one. */
static struct packs_account *find_largest(const struct packs *packs, struct packs_account *account)
{
	struct packs_account *largest = account, *other;
	uint64_t share = packs->budget_bytes / (packs->n_accounts + (account->packs ? 0 : 1));
	DL_FOREACH(packs->accounts, other)
	if (other->bytes > largest->bytes && other->bytes > share)
		largest = other;
	return largest;
}

/* NULL: there is none that nobody uses. */
static struct pack *find_oldest(const struct packs_account *account)
{
	struct pack *pack;
	DL_FOREACH(account->packs, pack)
	if (!is_used(pack))
		break;
	return pack;
}

/* ---- in and out ---- */

static void enter(struct packs *packs, struct pack **place, struct pack *pack)
{
	struct packs_account *account = pack->account;
	*place = pack;
	pack->kept = true;
	pack->used = ++packs->clock;
	if (!account->packs) {
		DL_APPEND(packs->accounts, account);
		packs->n_accounts++;
	}
	DL_APPEND(account->packs, pack);
	for (unsigned i = 0; i < pack->n; i++) {
		DL_APPEND(pack->of[i].root->packs, &pack->of[i]);
		atomic_fetch_add_explicit(&pack->of[i].root->n_packs, 1, memory_order_relaxed);
	}
	atomic_fetch_add_explicit(&account->bytes, pack->bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&packs->bytes, pack->bytes, memory_order_relaxed);
}

static void leave(struct packs *packs, struct pack *pack)
{
	struct packs_account *account = pack->account;
	struct pack **set = set_of(packs, &pack->key);
	for (unsigned way = 0; way < PACKS_WAYS; way++)
		if (set[way] == pack)
			set[way] = NULL;
	DL_DELETE(account->packs, pack);
	if (!account->packs) {
		DL_DELETE(packs->accounts, account);
		packs->n_accounts--;
	}
	for (unsigned i = 0; i < pack->n; i++)
		DL_DELETE(pack->of[i].root->packs, &pack->of[i]);
	atomic_fetch_sub_explicit(&account->bytes, pack->bytes, memory_order_relaxed);
	atomic_fetch_sub_explicit(&packs->bytes, pack->bytes, memory_order_relaxed);
	/* The last: from here on the tensors may go. */
	for (unsigned i = 0; i < pack->n; i++)
		atomic_fetch_sub_explicit(&pack->of[i].root->n_packs, 1, memory_order_release);
}

/* Puts the pack in where it can, with no more than one other taken out. Returns whether it is in, or is to be
 * tried again. */
enum outcome { IN, OUT, AGAIN };
static enum outcome put(struct packs *packs, struct pack *pack, struct pack **gone)
{
	struct pack **place = find_place(set_of(packs, &pack->key), pack);
	if (!place || pack->bytes > packs->budget_bytes)
		return OUT;
	if (*place)
		*gone = *place;
	else if (packs->bytes + pack->bytes > packs->budget_bytes)
		*gone = find_oldest(find_largest(packs, pack->account));
	else {
		enter(packs, place, pack);
		return IN;
	}
	if (!*gone)
		return OUT;
	leave(packs, *gone);
	return AGAIN;
}

void packs_keep(struct packs *packs, struct pack *pack, struct tensor *const *tensors, unsigned n)
{
	enum outcome outcome = AGAIN;
	const struct tensor *first = tensor_root(tensors[0]);
	pack->n = n;
	for (unsigned i = 0; i < n; i++)
		pack->of[i] = (struct pack_of){.pack = pack, .root = tensor_root(tensors[i])};
	pack->account = first->account ? first->account : &packs->own;
	while (outcome == AGAIN) {
		struct pack *gone = NULL;
		if (!packs->budget_bytes || !try_lock(packs))
			return;
		outcome = put(packs, pack, &gone);
		unlock(packs);
		heap_free(packs->heap, gone);
	}
}

void packs_forget(struct packs *packs, struct tensor *tensor)
{
	while (atomic_load_explicit(&tensor->n_packs, memory_order_acquire)) {
		lock(packs);
		struct pack *pack = tensor->packs ? tensor->packs->pack : NULL;
		assert(!pack || !is_used(pack));
		if (pack)
			leave(packs, pack);
		unlock(packs);
		heap_free(packs->heap, pack);
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
