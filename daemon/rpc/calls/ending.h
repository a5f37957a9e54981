/* The end of a peer whose calls are all over: what its session leaves behind goes, and then the session. */
#ifndef RPC_ENDING_H
#define RPC_ENDING_H

#include "daemon/rpc/core.h"

/* The client is gone: the peer's calls are to be dropped or cancelled, in its turn. */
void ending_announce(struct rpc *rpc, struct rpc_peer *peer);
/* Neither of the next process nor of another connection: what is made of it goes. */
void ending_give_up_snapshot(struct rpc *rpc, struct session *session);
/* The peer has no calls any more. Its session's unnamed tensors are freed, as many at a time as take the loop no
 * long time, each part after what still runs on its tensors for others; then peer->drained is called. Called when
 * something has changed, goes on as far as it can. */
void ending_go_on(struct rpc *rpc, struct rpc_peer *peer);
/* The session goes on without this peer, which is drained at once. */
void ending_leave(struct rpc *rpc, struct rpc_peer *peer);

#endif
