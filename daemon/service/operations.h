/* A session's operations on tensors: checked, then run, then ended.
 * Between check and run nothing may happen that conflicts with the operation; this is where the order of
 * operations that run side by side is kept, so nobody above the service calls op_run himself. */
#ifndef SERVICE_OPERATIONS_H
#define SERVICE_OPERATIONS_H

#include "daemon/device/operations/op.h"

struct session;

enum {
	OPERATIONS_GROUP_MAX = 256, /* of one parallel group */
	/* Of one request. Each is looked at on the loop before the first one runs, for about a microsecond. */
	OPERATIONS_MAX = 1024,
};

/* Checks an operation that is about to start, every one before it that conflicts having run: all that can be told
 * without looking at bytes. 0, or what op_check says. Call operations_end in either case. */
int operations_check(struct session *session, struct op *op, struct npumem_error *error);

/* Checks the two queues of a parallel group against each other, before any of its operations is checked itself.
 * `base`: the index of ops[0] in the request. 0; ABORTED naming two that conflict. */
int operations_check_group(struct session *session, struct op *const *ops, unsigned n, unsigned base,
			   struct npumem_error *error);

/* Runs a checked operation, on any thread. 0, or what op_run says, having written nothing: FAILED_PRECONDITION or
 * DATA_LOST for what was never written or is damaged, INVALID where tensors share bytes or a kernel refuses the
 * data it found, CANCELLED where it is no longer wanted. DATA_LOST, too, where the client's memory faulted on the
 * way: what was written from it counts as never written. */
int operations_run(struct session *session, struct op *op, struct npumem_error *error);
/* After a run that returned 0, on the service's thread. */
void operations_finish(struct session *session, struct op *op);

/* Gives back what the check took; the op's results stay. */
void operations_end(struct session *session, struct op *op);

/* "run conv2d out=y", in words that this session may hear. Returns `buffer`. */
const char *operations_describe(struct session *session, const struct op *op, char *buffer, size_t bytes);

#endif
