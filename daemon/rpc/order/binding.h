/* The tensors of one request. They are looked up once, when it is resolved; whoever reads the request again takes
 * them in the same order. */
#ifndef RPC_BINDING_H
#define RPC_BINDING_H

#include "daemon/service/access.h"
#include "proto/npumem.pb-c.h"

enum {
	BINDING_FEW = 8,
	BINDING_BLOCKED = -3, /* what is found may go by a request before this one, or is about to; or none may
			       * come into being */
	BINDING_LATE = -4,    /* what is to go is used by a request after this one */
};

struct binding {
	const struct session *session;
	const struct scheduler_entry *entry; /* whose request it is; is_held: it looks ahead */
	struct tensor **tensors;	     /* `few`, or of the service's heap, */
	uint8_t *needs;			     /* and behind them what each was found for */
	size_t n, room, at;
	bool is_bound; /* nothing is looked up any more */
	struct tensor *few[BINDING_FEW];
	uint8_t few_needs[BINDING_FEW];
};

void binding_init(struct binding *binding, const struct session *session, const struct scheduler_entry *entry);
void binding_deinit(struct binding *binding);
/* What it has of the heap. */
static inline size_t binding_heap_bytes(const struct binding *binding)
{
	return binding->tensors == binding->few ? 0 : binding->room * (sizeof(struct tensor *) + 1);
}
/* From here on binding_find gives what it found so far, from the first on. */
void binding_bind(struct binding *binding);

/* The next tensor. `what` it is, for a refusal. 0, or what access_find says; RESOURCE_EXHAUSTED (host
 * memory); BINDING_BLOCKED. */
int binding_find(struct binding *binding, const Npumem__V1__Ref *ref, const char *what, enum access_need need,
		 struct tensor **tensor, struct npumem_error *error);
/* Whether a tensor of this name, of that uid, is there and may be gone soon: BINDING_BLOCKED. */
bool binding_name_may_go(const struct binding *binding, uint32_t uid, const char *name);
/* What was found may not be granted any more, where others went before the request. 0, or what access_check says.
 */
int binding_check(const struct binding *binding, struct npumem_error *error);

#endif
