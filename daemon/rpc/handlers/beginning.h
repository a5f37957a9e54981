/* A record that begins on a device with tensors: what there is comes first in it. */
#ifndef RPC_BEGINNING_H
#define RPC_BEGINNING_H

#include "daemon/rpc/calls/call.h"

/* For an exclusive call of a session that recorder_check lets record; to be returned from its handler as it is.
 * Begins the record and tells it of all tensors, a page at a time while others have the loop, but not the device;
 * then `then` answers, at whose moment nothing has changed. Where that is refused, or this has no memory, nothing
 * is recorded. */
int beginning_tell(struct call *call, int (*then)(struct call *call));

#endif
