/* The beginning and the end of a call. */
#ifndef RPC_LIFE_H
#define RPC_LIFE_H

#include "daemon/rpc/calls/call.h"

/* A call of a peer for a message that came just now; NULL without memory. */
struct call *life_new(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes);
/* call->error stays as it is when others have a turn, and a thread may set it. 0, or RESOURCE_EXHAUSTED. */
int life_keep_error(struct call *call);
/* Answers a call and ends it. `status` is what call->error says, or 0. */
void life_end(struct call *call, int status);
/* Ends it without an answer. */
void life_drop(struct call *call);
/* Gives the spare ones back to the heap. */
void life_pool_deinit(struct rpc *rpc);

#endif
