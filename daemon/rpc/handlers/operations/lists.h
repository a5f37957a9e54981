/* Lists of operations that a client keeps here, to run them by an id of its own. A list is its KeepRequest,
 * decoded once. It holds no tensor and no segment: what its handles name is found at each run, as for any submit.
 */
#ifndef RPC_LISTS_H
#define RPC_LISTS_H

#include "daemon/rpc/calls/call.h"

enum { LISTS_MAX = 64 }; /* of one session: they are searched one by one */

struct list;

/* All of a peer that has no calls any more. */
void lists_deinit(struct rpc_peer *peer);

/* Gives a submit that was just decoded the operations of the list that it names, with its changes, in place of the
 * list; sets call->list. 0; INVALID, NOT_FOUND, RESOURCE_EXHAUSTED. */
int lists_expand(struct call *call);
/* The call does not need its list's operations any more. NULL is allowed. */
void lists_release(struct list *list);

#endif
