/* What is sent unasked: events, and how far long runs are. */
#ifndef RPC_PROGRESS_H
#define RPC_PROGRESS_H

#include "daemon/rpc/calls/call.h"

/* Sends what the subscribers' rings hold, to those that keep up. */
void progress_send(struct rpc *rpc);
/* A call's progress is told from now on, when it has run for a while; until progress_forget, at its end. */
void progress_follow(struct call *call);
void progress_forget(struct call *call);
/* Somebody follows these kinds from now on. */
void progress_subscribed(struct rpc *rpc, unsigned kinds);
/* Puts how far each run is into the rings of those who may see it, where that is due. */
void progress_look(struct rpc *rpc);
/* When it is next due; UINT64_MAX: never. */
uint64_t progress_due(const struct rpc *rpc);

#endif
