/* A session's operations on tensors: checked, then run, then ended. Nothing that conflicts with the operation may
 * happen between check and run (scheduler.h): no code above the service calls op_run directly. */
#ifndef SERVICE_OPERATIONS_H
#define SERVICE_OPERATIONS_H

#include "daemon/device/operations/op.h"

struct session;

enum {
	OPERATIONS_GROUP_MAX = 256, /* of one parallel group */
	/* Of one request. Before the first one runs, each takes about a microsecond on the loop. */
	OPERATIONS_MAX = 1024,
};

/* Checks an operation that is about to start: all that can be checked without reading bytes. Conflicting earlier
 * operations have ended. Returns op_check's status. Call op_deinit in either case. */
int operations_check(struct session *session, struct op *op, struct npumem_error *error);

/* Checks the two queues of a parallel group against each other, before any of its operations is checked itself.
 * `base`: the index of ops[0] in the request. 0; ABORTED naming two that conflict. */
int operations_check_group(struct session *session, struct op *const *ops, unsigned n, unsigned base,
			   struct npumem_error *error);

/* Runs a checked operation, on any thread. Returns op_run's status: FAILED_PRECONDITION (an input was never
 * written), DATA_LOST (an input is damaged, or the client's shared memory faulted), INVALID (a kernel refuses its
 * data), CANCELLED. After a fault or a cancellation the elements written so far count as never written; otherwise
 * nothing was written. */
int operations_run(struct session *session, struct op *op, struct npumem_error *error);
/* After a run that returned 0, on the service's thread. */
void operations_finish(struct session *session, struct op *op);

/* "run conv2d out=y", with names that this session may see. Returns `buffer`. */
const char *operations_describe(struct session *session, const struct op *op, char *buffer, size_t bytes);

#endif
