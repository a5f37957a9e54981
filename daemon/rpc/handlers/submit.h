/* Many operations in one request: in order, with parallel groups. */
#ifndef RPC_SUBMIT_H
#define RPC_SUBMIT_H

#include "daemon/rpc/call.h"

enum {
	SUBMITTED_DONE = 1, /* Submitted.done */
	/* Of one request. Each is looked at on the loop before the first one runs, for about a microsecond. */
	OPERATIONS_MAX = 1024,
};

/* A submit that yielded has its turn again. */
void submit_go_on(struct call *call);
/* It was cancelled: what of it waits for a thread need not. There is executor.withdraw. It may end. */
void submit_hurry(struct call *call);
/* How far a submit that has started is, in operations, each of KERNEL_PARTS. */
void submit_progress(const struct call *call, uint64_t *done, uint64_t *total);

#endif
