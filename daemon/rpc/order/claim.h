/* What a request will access, told before it runs: for the scheduler. A claim names each root tensor once, with
 * all that the request does to it. */
#ifndef RPC_CLAIM_H
#define RPC_CLAIM_H

#include "daemon/device/operations/op_rule.h"
#include "daemon/service/scheduler.h"

enum { CLAIM_FEW = 6 };

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
/* After claims that were made in several turns of the loop: a root that another claim had in between is in it
 * twice, and is in it once after this. All roots are live. Returns whether there was such a root. */
bool claim_merge(struct claim *claim);
/* What it has of the heap. */
static inline size_t claim_heap_bytes(const struct claim *claim)
{
	return claim->accesses == claim->few ? 0 : claim->room * sizeof(*claim->accesses);
}

/* What is accessed of a tensor, or of a view. 0, or -ENOMEM. */
int claim_tensor(struct claim *claim, struct tensor *tensor, bool writes);
/* The same as a write, of what it frees. */
int claim_free(struct claim *claim, struct tensor *tensor);
/* That it is there, and no bytes of it. */
int claim_look(struct claim *claim, struct tensor *tensor);
int claim_op(struct claim *claim, const struct op *op);

#endif
