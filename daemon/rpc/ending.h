/* The end of a peer whose jobs are all done: what its session leaves behind goes, and then the session. */
#ifndef RPC_ENDING_H
#define RPC_ENDING_H

#include "daemon/rpc/rpc.h"

/* Frees the session's unnamed tensors, as many at a time as take the loop no long time, each part after what still
 * runs on its tensors for others; then tells peer->drained. Does nothing when called again. */
void ending_begin(struct rpc *rpc, struct rpc_peer *peer);

#endif
