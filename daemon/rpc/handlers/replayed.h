/* Requests that are sent again (Request.again): what was done before is answered from what the service has kept of
 * it, in its turn. */
#ifndef RPC_REPLAYED_H
#define RPC_REPLAYED_H

#include "daemon/rpc/calls/call.h"

/* Before the resolver: sets call->handle where the request was done, and the resolver is not called then. 0;
 * ABORTED where it was done in part, where it is not known any more whether it was done, or where
 * replayed_check_deaths says so; RESOURCE_EXHAUSTED. */
int replayed_resolve(struct call *call);
/* 0; ABORTED (field: deaths): the request is sent again, and the daemon has died twice while it ran. */
int replayed_check_deaths(struct call *call);
/* After the resolver: 0; ABORTED where the request may have been done and must not be done twice. */
int replayed_check(struct call *call);
/* Whether the request was done, or may have been, before it was sent again: a cancel cannot take it back. */
bool replayed_is_kept(const struct call *call);

#endif
