/* Many operations in one request: in order, with parallel groups. */
#ifndef RPC_SUBMIT_H
#define RPC_SUBMIT_H

#include "daemon/rpc/calls/call.h"

enum {
	SUBMITTED_DONE = 1, /* Submitted.done */
	/* Of one request. Each is looked at on the loop before the first one runs, for about a microsecond. */
	OPERATIONS_MAX = 1024,
};

/* How many operations from `index` on run as one. */
size_t submit_group(const Npumem__V1__SubmitRequest *request, size_t index);
/* What its sender calls an operation; empty: nothing. */
const char *submit_label(const struct call *call, size_t index);
/* Puts in front of a refusal which operation it is about. `op`: NULL where it could not even be prepared. Returns
 * the status. */
int submit_refuse(struct call *call, size_t index, const struct op *op);
/* An operation that runs on a thread now, its kernel before its transfer, and its label; NULL: none. */
const struct op *submit_running(const struct call *call, const char **label);
/* How far a submit that has started is, in operations, each of KERNEL_PARTS. */
void submit_progress(const struct call *call, uint64_t *done, uint64_t *total);

#endif
