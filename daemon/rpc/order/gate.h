/* How a request waits for those that its own session sent before it, and arrives among all others'. What waits at
 * the gate holds its own bytes and nothing else: no tensor was looked up for it, and it has no place in any queue.
 * A request arrives once: its tensors are found, its rights are checked, and it enters the queues of all that it
 * accesses (service/scheduler.h). Between sessions only what was answered is in an order: a request is after all
 * that was answered before it was sent. */
#ifndef RPC_GATE_H
#define RPC_GATE_H

#include "daemon/rpc/calls/call.h"

/* The call waits at its gate, behind those that do. */
void gate_hold(struct call *call);
/* Whether the call may arrive: what its session sent before it lets it, and its user has room. Else its
 * peer is queued when that changes. */
bool gate_lets_in(struct call *call);
/* The call waits at the gate no more, if it did. */
void gate_let_in(struct call *call);
/* For a free-standing call that is not over when its handler returns: later requests of its session wait at the
 * gate until it has ended. */
void gate_shut(struct call *call);
/* It was resolved: it enters the queues of what it claims, and may be ready at once. */
void gate_arrive(struct call *call);
/* The peer's turn is over, and another one that waits for fewer accesses of their user may have one. */
void gate_wake_next(struct rpc *rpc, struct rpc_peer *peer);
/* What the call changed in the tables is there: what its session sent after it need not wait for its end. */
void gate_pass(struct call *call);
/* The call waits at no gate any more, and is in no queue, the loop's included. */
void gate_leave(struct call *call);

/* Whether a request of the peer, or its end, may change tables now. false: the peer is woken when it may try
 * again. */
bool gate_lets_change(const struct rpc *rpc, struct rpc_peer *peer);
/* The disk has taken a round, or has all of it: peers of the user that wait for a share try again. */
void gate_synced(struct rpc *rpc, struct scheduler_user *user);
/* Accesses of the user have ended: requests that waited for it arrive in their turn. */
void gate_fewer(struct rpc *rpc, struct scheduler_user *user);
/* The peer waits for nothing any more, nor for a turn. */
void gate_forget(struct rpc *rpc, struct rpc_peer *peer);

/* A call that has arrived is in no queue any more: its claim may be made anew. */
void gate_leave_queues(struct call *call);
/* It enters the queues again, behind all others, with what it claims now. */
void gate_enter_again(struct call *call);

#endif
