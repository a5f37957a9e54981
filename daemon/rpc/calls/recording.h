/* A call's entry of the record, from what was gathered while it was answered (struct recording): the answer itself
 * may be megabytes, and is not read again. */
#ifndef RPC_RECORDING_H
#define RPC_RECORDING_H

#include "daemon/rpc/calls/call.h"

/* An operation that ran; takes over `transfer`, which may be NULL. */
void recording_op(struct recording *recording, uint64_t digest, struct recorder_transfer *transfer);
/* The reply is complete: into the record, where there is one. */
void recording_end(struct call *call, int status);
/* The same of a call that succeeds, before its end: the reply has the answer as the record is to have it, and is
 * empty again after this. recording_end does nothing then. */
void recording_before_end(struct call *call);

#endif
