/* How a request arrives, in the order in which its session sent it (gate.h). */
#ifndef RPC_ARRIVE_H
#define RPC_ARRIVE_H

#include "daemon/rpc/calls/call.h"

/* A request of a session arrives, or waits at the gate. It may end. */
void arrive_receive(struct call *call);
/* What waits at the peer's gate arrives, as far as it may until the clock says end_ns (rpc_spell_end). The rest
 * waits for another turn. */
void arrive_open(struct rpc *rpc, struct rpc_peer *peer, uint64_t end_ns);

#endif
