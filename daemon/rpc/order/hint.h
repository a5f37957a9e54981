/* What a request may access that cannot be resolved yet. */
#ifndef RPC_HINT_H
#define RPC_HINT_H

#include "daemon/rpc/calls/call.h"

/* Claims, as a write of all of it, each tensor that the request names and that is there now, so that it keeps its
 * place before what comes later. Without memory for all, as many as there is room for. */
void hint_claim(struct call *call, struct claim *hint);

#endif
