/* A request whose answer has not left the daemon is sent again after a restart, and must then find what it found.
 * So before a session changes what an earlier request of its own has read, or ends what that has used, the answers
 * that it has not been sent yet are sent: what is in the client's socket outlives the daemon. Where it does not
 * take them, or passes them on to another host (a session that lingers), it is remembered that these requests, and
 * no others, cannot be done again (service/kept/stale.h). */
#ifndef RPC_UNSENT_H
#define RPC_UNSENT_H

#include "daemon/device/operations/op.h"
#include "daemon/service/session.h"

struct rpc_peer;

/* Before a checked operation of the session. `is_once`: of a request that is not done again, so that neither may
 * be what an earlier one has written there. */
void unsent_before_op(struct session *session, const struct op *op, bool is_once);
/* Before it frees, seals or renames a tensor. */
void unsent_before_change(struct session *session, const struct tensor *tensor);

/* A request is about to be answered. */
void unsent_note(struct rpc_peer *peer, uint64_t id);
/* All answers are in the client's socket. */
void unsent_sent(struct rpc_peer *peer);
/* The client has the answers of all requests with lower ids. */
void unsent_answered(struct rpc_peer *peer, uint64_t below);
/* Its connection ends. */
void unsent_forget(struct rpc_peer *peer);

#endif
