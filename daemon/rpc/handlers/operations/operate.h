/* Runs one operation of a request, alone or in a list, and appends its Done to the reply, in three steps of which
 * the middle one may be on another thread. */
#ifndef RPC_OPERATE_H
#define RPC_OPERATE_H

#include "daemon/device/operations/op.h"
#include "daemon/device/tensors/error_context.h"
#include "daemon/rpc/calls/call.h"
#include "daemon/rpc/handlers/operations/prepare.h"
#include "daemon/service/kept/notes.h"

enum {
	/* A bound for a Done without warning, destroyed and data, with its own tag and length. */
	OPERATE_DONE_BYTES = 96,
	/* A bound for the warning, and the names of destroyed tensors with their numbers. */
	OPERATE_DETAILS_BYTES = OP_DESTROYED_MAX * (ERROR_CONTEXT_NAME_BYTES + 80) + OP_WARNING_BYTES + 8,
};

/* An operation, from its message to its Done. */
struct operate {
	struct call *call;
	struct prepare_op prepared;
	struct npumem_error error;
	struct kernel_progress progress;
	struct reply *reply;
	unsigned field; /* of the reply, which its Done is */
	bool is_open;	/* that is open: of a read from the beginning, as its payload is put there */
	size_t index;	/* among the operations of its request */
	int status;	/* of the run */
	struct call_work work;
	size_t expected, used, mark; /* of the reply */
	uint64_t scratch_bytes;	     /* that its uid is charged for while it runs */
	uint64_t start_ns, end_ns;   /* of the run */
	struct notes notes;
	bool is_recorded;
	bool is_dry; /* it is checked, and does not run; it costs: */
	struct npumem_costs costs;
	struct recorder_transfer *transfer; /* what it moves to or from shared memory, where that is recorded */
	uint32_t data_crc;		    /* of what a read answers */
	uint64_t digest;
	struct operate *next; /* in the pool */
};

/* Of a request of one operation, before that is prepared: sets call->operate, until the call's end. 0, or
 * RESOURCE_EXHAUSTED. */
int operate_new(struct call *call);
/* After that: plans it, which is charged, and claims its tensors. 0, or RESOURCE_EXHAUSTED. */
int operate_claim(struct call *call);
/* Gives the spare ones back to the heap. */
void operate_pool_deinit(struct rpc *rpc);
/* Of a request that was resolved; nothing is prepared yet. */
void operate_init(struct operate *operate, struct call *call);
/* Checks and makes room, so that what follows cannot fail for want of it. Its Done will be field `field` of
 * `reply`. 0, or a status with nothing changed and nothing appended; then the operation is over. */
int operate_begin(struct operate *operate, struct reply *reply, unsigned field, size_t index);
/* Runs it. True: on a thread, and then done(operate). False: here, and it has run, or there was no memory for a
 * thread; operate->status says which. `cost`: of a run that was checked, handler_op_cost. */
bool operate_run(struct operate *operate, int64_t cost, void (*done)(void *operate));
/* The run alone, of one that was begun; on any thread. operate->status says how it went. */
void operate_work(void *operate);
/* One that was begun and has not run, without a state that is told of it: it is over. */
void operate_give_up(struct operate *operate);
/* It is cancelled, and no thread has begun it: it runs here, which takes no time, and done is not called. */
bool operate_withdraw(struct operate *operate);
/* Closes Done, or where operate->status is not 0 takes it back. `pending`: bytes of the reply that later
 * operations need. */
void operate_end(struct operate *operate, size_t pending);
/* After an end without a refusal: what is recorded of it. */
void operate_record(struct operate *operate);

#endif
