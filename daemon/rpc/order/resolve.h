/* From a decoded call to one that stands in the order of all: its tensors are found, once, and its accesses
 * claimed. */
#ifndef RPC_RESOLVE_H
#define RPC_RESOLVE_H

#include "daemon/rpc/calls/call.h"

/* A call that depends on tensors: resolves it, or holds it. It may end. */
void resolve_begin(struct call *call);
/* Resolves what the peer has held, as far as may be and a turn goes, of which *spent is over. What is left for
 * another turn is loose. */
void resolve_held(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent);
/* What waits to see what becomes of something is looked at again, soon. */
void resolve_blocked(struct rpc *rpc);
/* A call that has left the order comes into it again, with what it was resolved to. */
void resolve_again(struct call *call);
/* The call is in no order any more, neither its session's nor that of all. */
void resolve_leave(struct call *call);
/* The peer waits for nobody else's call. */
void resolve_forget(struct rpc *rpc, struct rpc_peer *peer);

#endif
