/* The tensors of one request. They are looked up once, when it is resolved; whoever reads the request again takes
 * them in the same order. */
#ifndef RPC_BINDING_H
#define RPC_BINDING_H

#include "daemon/service/access.h"
#include "proto/npumem.pb-c.h"

enum { BINDING_FEW = 8 };

struct binding {
	const struct session *session;
	struct tensor **tensors; /* `few`, or of the service's heap, */
	uint8_t *needs;		 /* and behind them what each was found for */
	size_t n, room, at;
	bool is_bound;	      /* nothing is looked up any more */
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

#endif
