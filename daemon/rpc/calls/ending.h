/* The end of a peer whose calls are all over: what its session leaves behind goes, and then the session. */
#ifndef RPC_ENDING_H
#define RPC_ENDING_H

#include "daemon/rpc/order/claim.h"
#include "daemon/service/tensors.h"

struct rpc;
struct rpc_peer;

enum { ENDING_PART = 128 };

/* Part of the peer, so that its end takes no memory. Zero at first. */
struct ending {
	struct scheduler_entry entry; /* first, so that the one is the other */
	struct rpc *rpc;
	struct rpc_peer *peer;
	struct claim claim;
	bool has_begun;
	bool is_ready;	 /* nothing uses the part's tensors any more */
	bool is_freeing; /* a step of freeing the part is over, and another one is due */
	size_t n;
	struct tensor *tensors[ENDING_PART];
	struct tensors_free freeing;
};

/* Frees the session's unnamed tensors, as many at a time as take the loop no long time, each part after what still
 * runs on its tensors for others; then tells peer->drained. Called when something has changed, goes on as far as
 * it can. */
void ending_go_on(struct rpc *rpc, struct rpc_peer *peer);

#endif
