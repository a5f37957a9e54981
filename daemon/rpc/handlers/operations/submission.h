/* A submit that has started: it goes from step to step. */
#ifndef RPC_SUBMISSION_H
#define RPC_SUBMISSION_H

#include "daemon/rpc/handlers/operations/part.h"

/* Goes on until something runs elsewhere, others are to have a turn, or all is done. What a handler returns. */
int submission_go_on(struct call *call);
/* call->withdraw: the call is cancelled, and parts that no thread has begun end. */
int submission_withdraw(struct call *call);

/* ---- its progress ---- */

/* An operation that runs on a thread now, its kernel before its transfer, and its label; NULL: none. */
const struct op *submission_running(const struct call *call, const char **label);
/* How far a submit that has started is, in operations, each of KERNEL_PARTS. */
void submission_progress(const struct call *call, uint64_t *done, uint64_t *total);

#endif
