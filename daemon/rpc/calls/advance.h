/* What moves calls on from state to state. Nothing here is called back from below: whatever becomes possible is
 * put into a list, and advance_settle comes to it. */
#ifndef RPC_ADVANCE_H
#define RPC_ADVANCE_H

#include "daemon/rpc/calls/call.h"

/* A call that was decoded: resolves it, or holds it. It may end. */
void advance_begin(struct call *call);
/* The call stands in no list and no queue any more. */
void advance_leave(struct call *call);
/* It leaves the order, to stand in line for room: what its session sends after it does not wait for it. */
void advance_step_aside(struct call *call);
/* It comes into the order again, behind all that are there: its handler is called once more when it is ready. */
void advance_step_back(struct call *call);
/* A call's turn has come, or it gives others one: the loop will come to it. */
void advance_ready(struct call *call);
/* Whether the rest of a turn is for others. */
bool advance_is_spent(const struct rpc *rpc, int64_t spent);

/* The peer's held calls are looked at again, soon. */
void advance_loosen(struct rpc *rpc, struct rpc_peer *peer);
/* All that can be done now, as far as a turn goes. Not to be called from a handler or a resolver. */
void advance_settle(struct rpc *rpc);
/* No call of the peer, and not the peer itself, is in a list here. */
void advance_forget(struct rpc *rpc, struct rpc_peer *peer);

#endif
