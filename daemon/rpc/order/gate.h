/* How a request waits for those that its own session sent before it, and arrives among all others'. What waits at
 * the gate holds its own bytes and nothing else: no tensor was looked up for it, and it has no place in any queue.
 * A request arrives once: its tensors are found, its rights are checked, and it enters the queues of all that it
 * accesses (service/scheduler.h). Between sessions only what was answered is in an order: a request is after all
 * that was answered before it was sent. */
#ifndef RPC_GATE_H
#define RPC_GATE_H

#include "daemon/rpc/calls/call.h"

/* A request of a session arrives, or waits at the gate. It may end. */
void gate_receive(struct call *call);
/* What waits at the peer's gate arrives, as far as may be and a turn goes, of which *spent is over. The rest waits
 * for another turn. */
void gate_open(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent);
/* What the call changed in the tables is there: what its session sent after it need not wait for its end. */
void gate_pass(struct call *call);
/* The call waits at no gate any more, and is in no queue. */
void gate_leave(struct call *call);

/* Accesses of the user have ended: requests that waited for it arrive in their turn. */
void gate_fewer(struct rpc *rpc, struct scheduler_user *user);
/* The peer waits for nothing any more. */
void gate_forget(struct rpc *rpc, struct rpc_peer *peer);

/* A call that has arrived is in no queue any more: its claim may be made anew. */
void gate_leave_queues(struct call *call);
/* It enters the queues again, behind all others, with what it claims now. */
void gate_enter_again(struct call *call);

#endif
