/* What moves calls on from state to state. Nothing here is called back from below: what becomes possible is queued
 * in service->queue as work of its user. */
#ifndef RPC_ADVANCE_H
#define RPC_ADVANCE_H

#include "daemon/rpc/calls/call.h"

/* A call that was decoded: resolves it, or holds it. It may end. */
void advance_begin(struct call *call);
/* The call stands in no list and no queue any more. */
void advance_leave(struct call *call);
/* It leaves the order, to stand in line for room: what its session sends after it does not wait for it. */
void advance_step_aside(struct call *call);
/* Queues a call that may begin, or go on. */
void advance_ready(struct call *call);
/* Begins the call of the message that is being received, where it is ready. */
void advance_arrived(struct rpc *rpc);
/* Whether a piece of work has cost (in op_cost's unit) what one may, and the rest is to be queued. */
bool advance_is_spent(const struct rpc *rpc, int64_t spent);

/* Queues the peer: what waits at its gate arrives in its turn, as far as it may. */
void advance_make_runnable(struct rpc *rpc, struct rpc_peer *peer);
/* What follows from what was done: waiting allocations, events, the alarm; and where there is no loop, all that is
 * queued. Not to be called from a handler or a resolver. */
void advance_settle(struct rpc *rpc);
/* No call of the peer, and not the peer itself, is in a list here. */
void advance_forget(struct rpc *rpc, struct rpc_peer *peer);

#endif
