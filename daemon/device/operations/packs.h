/* Packs: what a kernel makes of a tensor before it multiplies by it, kept for the next run.
 *
 * A pack is of the elements that a tensor, or two, had at one version: every operation that may write a tensor
 * raises its root's version before it does, and a pack of another version is never found. Runs on several threads
 * find, make and give back packs at once. The table has a bound in bytes and in packs.
 *
 * Accounts share it. Where it is full, the one that has most makes room, unless it has no more than an equal
 * share: then the account that keeps one more makes room itself. The least recently used pack of an account goes
 * first. */
#ifndef DEVICE_PACKS_H
#define DEVICE_PACKS_H

#include "daemon/device/memory/heap.h"
#include "daemon/device/operations/kernel.h"

struct tensor;
struct pack;

enum { PACKS_SETS = 256, PACKS_WAYS = 8, PACKS_ROLES = 16, PACKS_TENSORS = 2, PACKS_ALIGN = 64 };

/* All that a pack may depend on beside the elements. */
struct pack_key {
	struct {
		uint64_t handle, version; /* of the root: no handle is given again */
		struct npumem_place place;
	} tensors[PACKS_TENSORS]; /* handle 0: none */
	int kernel;
	enum isa isa;
	struct {
		int dtype;
		struct npumem_dims shape;
	} roles[PACKS_ROLES];
	struct kernel_params params;
};

/* Whose packs are counted together. Zero at first; it may go when no tensor that has it is left. */
struct packs_account {
	_Atomic uint64_t bytes; /* host memory of its packs */
	struct pack *packs;	/* what was not used for longest first */
	struct packs_account *next, *prev;
};

struct packs {
	const struct heap *heap;
	atomic_flag lock;
	uint64_t budget_bytes;
	_Atomic uint64_t bytes; /* of all that are kept */
	uint64_t clock;
	struct packs_account *accounts; /* that have packs */
	unsigned n_accounts;
	struct packs_account own; /* of tensors without one */
	struct pack *sets[PACKS_SETS][PACKS_WAYS];
};

/* `budget_bytes` 0: none is kept. */
void packs_init(struct packs *packs, const struct heap *heap, uint64_t budget_bytes);
/* When no operation runs. */
void packs_deinit(struct packs *packs);

/* Of the call's packed roles, which are these tensors, 1 to PACKS_TENSORS, as they are now. */
void packs_key(struct pack_key *key, const struct kernel_call *call, struct tensor *const *tensors, unsigned n);
/* A pack not yet made. NULL without host memory. The caller uses it. */
struct pack *packs_new(struct packs *packs, const struct pack_key *key, size_t bytes);
/* Host memory of a pack. */
size_t packs_bytes(size_t bytes);
void *pack_data(struct pack *pack);

/* A kept one, or NULL; the caller uses it. */
struct pack *packs_find(struct packs *packs, const struct pack_key *key);
/* Whether nothing was written to the tensors of its key since. */
bool packs_is_current(const struct pack *pack, struct tensor *const *tensors, unsigned n);
/* Keeps a pack of these tensors that has been made, where there is room for it, counted with those of the first
 * one's account. The caller goes on using it. */
void packs_keep(struct packs *packs, struct pack *pack, struct tensor *const *tensors, unsigned n);
/* The tensor goes, no view; no operation on it runs. */
void packs_forget(struct packs *packs, struct tensor *tensor);
/* The caller is done with it. NULL: nothing. */
void packs_done(struct packs *packs, struct pack *pack);

#endif
