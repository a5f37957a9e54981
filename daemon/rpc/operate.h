/* Runs one prepared op and appends its Done to the reply: in one go, or in three steps of which the middle one may
 * be on another thread. */
#ifndef RPC_OPERATE_H
#define RPC_OPERATE_H

#include "daemon/rpc/call.h"

enum {
	/* A bound for a Done without warning, destroyed and data, with its own tag and length. */
	OPERATE_DONE_BYTES = 88,
	/* A bound for the warning, and the names of destroyed tensors with their numbers. */
	OPERATE_DETAILS_BYTES = OP_DESTROYED_MAX * (ERROR_CONTEXT_NAME_BYTES + 80) + OP_WARNING_BYTES + 8,
};

/* What the reply to a read of this many elements carries, 0 for other ops; to be asked before or after the check.
 */
uint64_t operate_payload_bytes(const struct op *op);

/* An op between its check and its Done. */
struct operate {
	struct call *call;
	struct op *op;
	size_t expected, used, mark; /* of the reply */
	uint64_t start_ns, end_ns;   /* of the run */
	bool is_recorded;
	struct recorder_transfer *transfer; /* what it moves to or from shared memory, where that is recorded */
	uint32_t data_crc;		    /* of what a read answers */
	uint64_t digest;
};

/* Checks and makes room, so that what follows cannot fail for want of it; opens Done as field `field`. 0, or a
 * status with nothing changed and nothing appended; then the operation is over. */
int operate_begin(struct operate *operate, struct call *call, unsigned field, struct op *op);
/* Runs, on any thread; touches the op, its local memory and its place in the reply only. 0, or what operations_run
 * says. */
int operate_run(struct operate *operate, struct npumem_error *error);
/* Closes Done, or where `status` is not 0 takes it back. */
void operate_end(struct operate *operate, int status);
/* After an end without a refusal: tells the call whose answer has this Done what is recorded of it; `index` among
 * its operations. */
void operate_record(struct operate *operate, struct call *call, size_t index);

/* All four: 0, or a status with nothing changed and nothing appended. */
int operate(struct call *call, unsigned field, struct op *op, size_t index);

#endif
