/* The tensors of a request. Its binding has those that it names: each is looked up once, when the request is
 * resolved; later readers of the request take them in the same order. Its claim says for the scheduler what it
 * will access: each root tensor once, with all that the request does to it, and each view once. A change of a view
 * itself waits for the requests that use the view, and not for those of the root's bytes: else whoever may read a
 * tensor could keep its owner from it by changing a view of it behind a long request. */
#ifndef RPC_CLAIM_H
#define RPC_CLAIM_H

#include "daemon/device/operations/op_rule.h"
#include "daemon/service/order/scheduler.h"
#include "daemon/service/tensors/access.h"
#include "proto/npumem.pb-c.h"

enum { BINDING_FEW = 8 };

struct binding {
	const struct session *session;
	struct tensor **tensors; /* `few`, or of the service's heap, */
	uint8_t *needs;		 /* and behind them what each was found for */
	size_t n, room, at;
	bool is_bound;	      /* all were looked up */
	struct tensor *going; /* was not found, as a free of it has arrived; NULL: none */
	struct tensor *few[BINDING_FEW];
	uint8_t few_needs[BINDING_FEW];
};

void binding_init(struct binding *binding, const struct session *session);
void binding_deinit(struct binding *binding);
/* What it has of the heap. */
static inline size_t binding_heap_bytes(const struct binding *binding)
{
	return binding->tensors == binding->few ? 0 : binding->room * (sizeof(struct tensor *) + 1);
}
/* Nothing is found yet. */
void binding_restart(struct binding *binding);
/* record_is_unchanged for each. */
bool binding_is_unchanged(const struct binding *binding, uint64_t since);
/* From here on binding_find gives what it found so far, from the first on. */
void binding_bind(struct binding *binding);

/* The next tensor. `what` it is, for a refusal. 0, or what access_find says; RESOURCE_EXHAUSTED (host
 * memory). */
int binding_find(struct binding *binding, const Npumem__V1__Ref *ref, const char *what, enum access_need need,
		 struct tensor **tensor, struct npumem_error *error);
/* What was found may not be granted any more, where others went before the request. 0, or what access_check says.
 */
int binding_check(const struct binding *binding, struct npumem_error *error);

/* ---- what is accessed ---- */

enum { CLAIM_FEW = 5 };

enum claim_use {
	CLAIM_EXISTS, /* it must exist: none of its bytes is accessed */
	CLAIM_READ,
	CLAIM_CHANGE, /* nobody uses it meanwhile, */
	CLAIM_FREE,   /* and it goes. Of a view itself, these, and its root exists. */
};

struct claim {
	const struct heap *heap;
	struct scheduler_access *accesses; /* `few`, or of the heap */
	size_t n, room;
	uint64_t stamp; /* no other claim's */
	struct scheduler_access few[CLAIM_FEW];
};

/* Claims nothing yet. */
void claim_init(struct claim *claim, const struct heap *heap);
void claim_deinit(struct claim *claim);
/* Claims nothing any more. */
void claim_restart(struct claim *claim);
/* After claims that were made in several turns of the loop: a root that another claim had in between is in it
 * twice, and is in it once after this. All roots are live. Returns whether there was such a root. */
bool claim_merge(struct claim *claim);
/* What it has of the heap. */
static inline size_t claim_heap_bytes(const struct claim *claim)
{
	return claim->accesses == claim->few ? 0 : claim->room * sizeof(*claim->accesses);
}

/* A tensor or a view; the root's access is before the view's. 0, or -ENOMEM. */
int claim_tensor(struct claim *claim, struct tensor *tensor, enum claim_use use);
/* The tensor that the request will make, as the last access. 0, or -ENOMEM. */
int claim_made(struct claim *claim);
/* Nothing of a tensor that is going but to wait for its free. 0, or -ENOMEM. */
int claim_going(struct claim *claim, struct tensor *tensor);
int claim_op(struct claim *claim, const struct op *op);

#endif
