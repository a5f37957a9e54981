/* Runs one prepared op and appends its Done to the reply, in three steps of which the middle one may be on another
 * thread. */
#ifndef RPC_OPERATE_H
#define RPC_OPERATE_H

#include "daemon/device/operations/op.h"
#include "daemon/device/tensors/error_context.h"
#include "daemon/rpc/calls/recording.h"
#include "daemon/rpc/reply.h"
#include "daemon/service/kept/notes.h"
#include "daemon/service/session.h"

enum {
	/* A bound for a Done without warning, destroyed and data, with its own tag and length. */
	OPERATE_DONE_BYTES = 96,
	/* A bound for the warning, and the names of destroyed tensors with their numbers. */
	OPERATE_DETAILS_BYTES = OP_DESTROYED_MAX * (ERROR_CONTEXT_NAME_BYTES + 80) + OP_WARNING_BYTES + 8,
};

/* What the reply to a read of this many elements carries, 0 for other ops; to be asked before or after the check.
 */
uint64_t operate_payload_bytes(const struct op *op);

/* An op between its check and its Done. */
struct operate {
	struct session *session;
	struct op *op;
	struct reply *reply;
	struct npumem_error *error;
	uint64_t (*now_ns)(void);
	size_t expected, used, mark; /* of the reply */
	uint64_t scratch_bytes;	     /* that its uid is charged for while it runs */
	uint64_t start_ns, end_ns;   /* of the run; the former may be set before */
	uint64_t index;		     /* among the operations of its request */
	int64_t part, done;	     /* of a transfer that may go on in another turn: elements; 0: of no other */
	uint64_t request;	     /* whose operation it is, where what it did is kept; else 0 */
	bool is_final;		     /* once it was done, its request is not to be done again */
	struct notes notes;
	bool is_on_thread; /* its last part takes all that is left */
	bool is_recorded;
	struct recorder_transfer *transfer; /* what it moves to or from shared memory, where that is recorded */
	uint32_t data_crc;		    /* of what a read answers */
	uint64_t digest;
};

/* Checks and makes room, so that what follows cannot fail for want of it; opens Done as field `field`. session,
 * op, reply, error, now_ns, index, request and is_final are set. 0, or a status with nothing changed and nothing
 * appended; then the operation is over. */
int operate_begin(struct operate *operate, unsigned field);
/* After operate_begin: an operation that is short only because its memory is warm is looked at by the clock. */
void operate_watch(struct operate *operate);
/* Runs, on any thread; touches the op, its local memory and its place in the reply only. 0, or what operations_run
 * says; -EAGAIN: it is watched and has taken long, and what is left is for another thread, where there is one. */
int operate_run(struct operate *operate);
/* Closes Done, or where `status` is not 0 takes it back. `pending`: bytes of the reply that are spoken for. */
void operate_end(struct operate *operate, int status, size_t pending);
/* After an end without a refusal: what is recorded of it. */
void operate_record(struct operate *operate, struct recording *recording);

#endif
