/* What a submit's two ways to run share: in one go (handle_submit), and step by step beside others (job_submit.c).
 */
#ifndef RPC_SUBMIT_H
#define RPC_SUBMIT_H

#include "daemon/rpc/call.h"

enum {
	SUBMITTED_DONE = 1, /* Submitted.done */
	/* Of one request. Each is looked at on the loop before the first one runs, for about a microsecond. */
	OPERATIONS_MAX = 1024,
};

struct submit_mark {
	size_t mark, expected;
};

/* Makes room for the whole answer and opens it. 0; INVALID, RESOURCE_EXHAUSTED. */
int submit_open(struct call *call, const Npumem__V1__SubmitRequest *request, struct submit_mark *mark);
/* Closes it, however far it came: what is in it ran. */
void submit_close(struct call *call, const struct submit_mark *mark);

/* How many operations from `index` on run as one: a parallel group, or 1. */
size_t submit_group(const Npumem__V1__SubmitRequest *request, size_t index);

/* Puts in front of a refusal which operation it is about. `op`: NULL where it could not even be prepared. Returns
 * the status. */
int submit_refuse(struct call *call, size_t index, const struct op *op);

#endif
