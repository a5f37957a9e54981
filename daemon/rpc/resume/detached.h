/* Sessions whose client is not there: found when the daemon began, or left behind by a connection that has ended.
 * Each waits for a connection that knows its token, for as long as service.persist says; then it ends like any
 * other. */
#ifndef RPC_DETACHED_H
#define RPC_DETACHED_H

#include "daemon/rpc/core.h"

/* Storage for one that was found, which is rpc's; NULL without memory. */
struct session *detached_new(void *rpc);
/* All that were found belong to their users from now on. */
void detached_recovered(struct rpc *rpc);
/* A connection's last call is over: true where its session stays without it, and the connection's own has nothing
 * any more. */
bool detached_keep(struct rpc *rpc, struct rpc_peer *peer);
/* The connection's session, which is fresh, goes on as the one that waits for this token. 0; NOT_FOUND;
 * UNAVAILABLE: there is such a session, and it has a connection, which ends now where the session lingers: its
 * client knows sooner than this host that the way between them is cut. */
int detached_return(struct rpc *rpc, struct session *session, const uint8_t *token, size_t bytes,
		    struct npumem_error *error);
/* When the first of them has waited long enough; UINT64_MAX: never. */
uint64_t detached_due(const struct rpc *rpc);
/* Ends those whose time is over, in turns to come. */
void detached_expire(struct rpc *rpc);
/* The daemon ends: they are left for the next one. */
void detached_deinit(struct rpc *rpc);

#endif
