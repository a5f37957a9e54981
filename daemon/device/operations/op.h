/* Operations on tensors: write, read, fill, copy (DMA) and run (a kernel).
 *
 * op_check() decides all that can be told without looking at bytes, so it is short; it is called when the
 * operation is about to start, after every conflicting one before it has run. op_run() first looks at what it
 * would read (bytes never written, damage, a NaN that a kernel cannot convert), and refuses that before anything
 * is written. op_group_check() tells which two operations of a group may not overlap, byte by byte, before any of
 * it runs. A checked op holds a little host memory until op_deinit(), and what its
 * kernel works on only during op_run(): the device's heap serves several threads. */
#ifndef DEVICE_OP_H
#define DEVICE_OP_H

#include "daemon/device/device.h"
#include "daemon/device/operations/kernel.h"

enum op_kind { OP_WRITE, OP_READ, OP_FILL, OP_COPY, OP_RUN };

/* The two queues of a parallel group. */
enum op_queue { OP_DMA, OP_COMPUTE };

enum { OP_DESTROYED_MAX = 16, OP_WARNING_BYTES = 256, OP_DESCRIPTION_BYTES = 192 };

/* System memory: elements of the tensor's type at base + (n*n_stride + c*c_stride + ...) elements, in logical
 * N,C,H,W order (a matrix: n is the row, w the column). */
struct op_system {
	uint8_t *base; /* of the whole buffer */
	uint64_t bytes;
	uint64_t off; /* of element 0 */
	bool strided; /* else continuous */
	/* The client's own memory, so that a read answers without data; NULL: a message's. */
	struct segment *segment;
	struct npumem_dims stride;
};

struct op_operand {
	char role[NPUMEM_FIELD_KEY_BYTES];
	struct tensor *tensor;
};

/* Data of another tensor that a kernel's lockstep destroyed; dummies are not counted. */
struct op_destroyed {
	struct tensor *tensor;
	int64_t npu, offset, bytes; /* the first range of it */
	int64_t total_bytes;
};

struct op {
	enum op_kind kind;
	struct tensor *tensor; /* written, read or filled; the destination of a copy */
	struct tensor *source; /* of a copy */
	/* write and read: elements [first, first + count) in row-major order; count < 0: all from `first`. */
	int64_t first, count;
	struct op_system system; /* write: source; read: destination */
	bool value_is_float;	 /* fill */
	int64_t value;
	double float_value;
	int kernel; /* run: enum npumem_kernel_number */
	struct op_operand *operands;
	unsigned n_operands;
	struct npumem_param *params;
	unsigned n_params;
	/* op_run looks at all but bytes, and then it is over: nothing is read or written. */
	bool is_dry;
	struct kernel_progress *progress; /* where it tells how far it is, and is cancelled; NULL: nowhere */
	/* Asked by op_run when nothing can refuse it any more, before the first byte is written: 0, or a status
	 * that `error` explains, and nothing is. NULL: nobody is asked. */
	int (*begins)(void *ctx, struct npumem_error *error);
	void *begins_ctx;

	/* Set by op_check and op_run. */
	struct kernel_counts counts;
	struct op_destroyed destroyed[OP_DESTROYED_MAX];
	unsigned n_destroyed;
	char warning[OP_WARNING_BYTES]; /* empty where there is none */
	bool torn;			/* stopped while it wrote */
	struct op_work *work;
};

/* Plans a run, whose op->work is NULL, for op_cost and op_check, which else do so themselves. Where it is to be
 * refused, op_check does that. Returns how much host memory the plan takes until op_deinit(). */
size_t op_plan(struct device *device, struct op *op);
/* 0; INVALID, FAILED_PRECONDITION (sealed, dma_only, unsafe), RESOURCE_EXHAUSTED (host memory). Changes nothing
 * but op's own results. On the thread that owns the device. */
int op_check(struct device *device, struct op *op, const struct error_context *context);
/* 0; FAILED_PRECONDITION (never written), DATA_LOST (a damaged input), INVALID (a kernel's data),
 * RESOURCE_EXHAUSTED (host memory), CANCELLED, or what op->begins says: nothing was written, but where it was
 * cancelled on its way: what a write, fill or copy had written by then counts as never written, and of a run all
 * of its outputs. May run on any thread, beside operations that do not conflict: it touches local memory, the op
 * and what is known to be written of its tensors, and no table of the device. `context` names no tensor but the
 * op's own. */
int op_run(struct device *device, struct op *op, const struct error_context *context);
/* After a run that returned 0, on the same thread: what a write has written was not what was meant, and counts as
 * never written. */
void op_take_back(struct device *device, struct op *op);
/* Gives back what op_plan and op_check took; after a failed op_check too. Leaves the results. On the thread that
 * owns the device, before anything that conflicts begins. */
void op_deinit(struct device *device, struct op *op);

/* Host memory that a checked operation has and op_run takes: of a kernel its operands, each tensor once, and its
 * scratch. Exact, and none of it is taken before op_run. */
uint64_t op_scratch_bytes(const struct op *op);

enum op_queue op_queue(const struct op *op);

/* About how many element steps an operation takes, the look at its inputs included, to tell short ones from long
 * ones; for a run without knowing its kernel, an upper bound by its operands. Needs no op_check before it; after
 * one a run whose pack was kept is known to be shorter. On the thread that owns the device. */
int64_t op_cost(struct device *device, const struct op *op);
/* Of these, what it takes to reach n elements of a tensor: those that lie side by side one step each. */
int64_t op_reach_cost(const struct tensor *tensor, int64_t n);

/* What a checked operation would do (Costs of npumem.proto); it takes no longer for large tensors. */
void op_costs(const struct device *device, const struct op *op, struct npumem_costs *costs);

/* Checks that no operation of one queue writes what one of the other reads or writes (a kernel's outputs by their
 * footprints, everything else by data). Needs no op_check before it. `base` is the index of ops[0] in the
 * caller's list, for the message. 0; ABORTED, naming both operations (fields: first, second, npu, offset, bytes);
 * CANCELLED, as the `progress` of an operation says. Exact, so with many operations, or irregular strides on large
 * NPUs, it may take long: looks every millisecond. On any thread, while the tensors stay; `context` as in op_run.
 */
int op_group_check(struct device *device, struct op *const *ops, unsigned n, unsigned base,
		   const struct error_context *context);
/* About how long that takes where it finds nothing, in the measure of op_cost. */
int64_t op_group_cost(struct op *const *ops, unsigned n);

/* "write x", "run conv2d out=y": how refusals speak of an operation. */
const char *op_describe(const struct op *op, const struct error_context *context, char *buffer, size_t bytes);

#endif
