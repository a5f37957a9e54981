/* Requests that are sent again (Request.again): what was done before is answered from what the service has kept of
 * it, in its turn. */
#ifndef RPC_REPLAYED_H
#define RPC_REPLAYED_H

#include "daemon/rpc/calls/call.h"

/* In place of the resolver: true where the request was done, and call->handle is set from then on; or where it is
 * not known any more whether it was. *status is then what a resolver returns. */
bool replayed_resolve(struct call *call, int *status);
/* Of a call that is sent again: true where the daemon has died twice while it ran, with *status ABORTED (field:
 * deaths). replayed_resolve asks it for all calls that are resolved. */
bool replayed_is_deadly(struct call *call, int *status);
/* After the resolver: 0; ABORTED where it may have been done and must not be done twice. */
int replayed_check(struct call *call);
/* Whether it was done, or may have been, before it was sent again: there is nothing to be taken back. */
bool replayed_is_kept(const struct call *call);

#endif
