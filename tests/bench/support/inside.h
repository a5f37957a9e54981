/* A device in this process: what operations cost without a daemon around them. Local memory is what the daemon's
 * is, 64 NPUs of 512 KiB. What fails ends the bench. */
#ifndef BENCH_INSIDE_H
#define BENCH_INSIDE_H

#include "daemon/device/operations/op.h"
#include "tests/bench/support/call.h"

struct inside {
	struct device *device;
	void *memory;
	size_t memory_bytes;
	struct npumem_error error;
	struct error_context context;
};

/* A kernel, or a write or read of one tensor, ready to be run again and again. */
struct inside_op {
	struct inside *inside;
	struct op op;
	struct op_operand operands[CALL_TENSORS_MAX];
	struct npumem_param params[CALL_PARAMS_MAX];
	struct tensor *tensors[CALL_TENSORS_MAX];
	unsigned n_own; /* tensors that go with it */
};

/* `isa` NULL: the best. */
void inside_open(struct inside *inside, const char *isa);
void inside_close(struct inside *inside);

/* Allocates and writes the call's tensors. `first`: used as the first of them (the output of another call), or
 * NULL. */
void inside_place(struct inside *inside, const struct call *call, struct tensor *first, struct inside_op *op);
/* The last tensor of the call. */
struct tensor *inside_out(const struct inside_op *op, const struct call *call);
/* `tensor` from, or to, `bytes` of memory. */
void inside_transfer(struct inside *inside, struct tensor *tensor, enum op_kind kind, void *data, size_t bytes,
		     struct inside_op *op);
/* Checks and runs it: a contender's. */
void inside_run(void *inside_op);
/* Frees its tensors. */
void inside_drop(struct inside_op *op);

#endif
