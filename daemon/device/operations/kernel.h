/* A kernel, as the device sees it: one pure function over its operands, and the check before it.
 *
 * A role is reached in one of two ways, as the kernel's row says. By feature: kernel_feature() tells where each
 * H x W of one n and c begins, which is in local memory itself wherever features lie in one piece there. Dense:
 * the device gathers an input into a row-major array, hands in an unset one for an output and scatters that. So a
 * kernel never meets a layout, start NPU or storage mode. */
#ifndef DEVICE_KERNEL_H
#define DEVICE_KERNEL_H

#include <stdatomic.h>

#include <npumem/kernels.h>
#include <npumem/layout.h>

#include "daemon/device/isa.h"

/* Of a feature that is reached in local memory: of shorter ones a dense array is the faster way. */
enum { KERNEL_FEATURE_BYTES_MIN = 32 };

/* Where features lie: each in one piece, row-major, in the type's container. */
struct kernel_features {
	uint8_t *base;	    /* of channel 0 of the array's NPU 0, at n 0, were start_npu 0 */
	int64_t n_bytes;    /* from n to n + 1 */
	int64_t row_bytes;  /* from channel c to c + n_npus */
	int64_t lane_bytes; /* from one NPU to the next */
	int64_t start_npu, n_npus;
};

/* One tensor of a call. */
struct kernel_operand {
	int dtype;
	int64_t frac_bits;		 /* 0 where the type has none */
	struct npumem_dims shape;	 /* a matrix R x M comes as [R, M, 1, 1] */
	void *data;			 /* dense, row-major over shape; NULL where features are in local memory */
	struct kernel_features features; /* this and data: only during run() */
};

/* Where feature (n, c) begins. Bytes around it are others': a kernel may touch those of the feature alone. */
static inline void *kernel_feature(const struct kernel_operand *operand, int64_t n, int64_t c)
{
	const struct kernel_features *features = &operand->features;
	int64_t at = features->start_npu + c;
	return features->base + n * features->n_bytes + at / features->n_npus * features->row_bytes +
	       at % features->n_npus * features->lane_bytes;
}

/* Features lie lanes apart, where no processor expects the next one: for those that come soon. */
static inline void kernel_prefetch(const void *feature, int64_t bytes)
{
	enum { LINE = 64, LINES = 8 };
	for (int64_t i = 0; i < bytes && i < LINE * LINES; i += LINE)
		__builtin_prefetch((const uint8_t *)feature + i);
}

/* Makes `data`, dense and row-major over the operand's shape, what it works on. */
void kernel_operand_dense(struct kernel_operand *operand, void *data);

/* The operands of one role: none where an optional one was left out, one, or a numbered family. */
struct kernel_role {
	const char *name;
	unsigned n;
	struct kernel_operand *operands;
};

/* Parameters by number; n_values is 0 for one that was not given. */
struct kernel_params {
	struct npumem_param given[NPUMEM_PARAMS_MAX];
};

/* What a run counts. Zero in both tells that the formats are right. */
struct kernel_counts {
	int64_t saturated; /* outputs that clamping to the container changed */
	int64_t wrapped;   /* accumulators whose exact sum was out of their range */
	int64_t divided_by_zero;
	int64_t macs; /* multiply-accumulates of the formula, without padded taps */
};

/* Of a call's plan, where it lies 16-byte aligned. */
enum { KERNEL_PLAN_BYTES = 1536 };

enum {
	/* Parts of an element of the outputs, in which progress is told: one that takes long by itself is told
	 * while it is made. */
	KERNEL_PARTS = 1024,
	/* Elements of any operand, or products, between two looks at whether the rest is wanted: far less than
	 * a millisecond. */
	KERNEL_PIECE = 16384,
};

/* What another thread may see and say while an operation runs. */
struct kernel_progress {
	_Atomic int64_t done;	/* never falls, and is `total` at the end */
	_Atomic int64_t total;	/* KERNEL_PARTS for each element; 0 before the run */
	_Atomic bool cancelled; /* the outputs are no longer wanted */
	/* The progress of what this is a part of, or NULL: what cancels that cancels this. */
	const struct kernel_progress *whole;
	/* Called at each look at the clock: another task may have the processor first. NULL: nothing is called. */
	void (*give_way)(void *ctx);
	void *give_way_ctx;

	/* For tests. */
	int64_t piece;					  /* instead of KERNEL_PIECE; 0: that */
	void (*looked)(struct kernel_progress *progress); /* after each look; NULL: nothing */

	/* Of the running thread. */
	int64_t told; /* parts of the elements that kernel_step counts next */
};

/* Fewer element steps, some 8 us, are not worth a second thread, even one that is awake. */
enum { KERNEL_SHARED_LEAST = 16000 };

/* Threads that may help the one that runs a kernel. */
struct kernel_crew {
	/* Calls work(arg, 0) on this thread, and at the same time work(arg, 1), ... on as many others as are free,
	 * and as are worth it for about so many element steps; returns when all of these calls have. */
	void (*share)(void *ctx, int64_t steps, void (*work)(void *arg, unsigned number), void *arg);
	/* Whether the calling thread only helps, and is wanted elsewhere. */
	bool (*is_wanted_elsewhere)(void *ctx);
	void *ctx;
	unsigned n_threads; /* at most, at least 1 */
};

struct kernel_call {
	const struct npumem_kernel_row *row;
	struct kernel_role *roles; /* in the order of the row's roles */
	unsigned n_roles;
	struct kernel_params params;
	enum npumem_rounding rounding; /* already resolved against the device's default */
	enum isa isa;		       /* the widest instructions that it may use */
	void *scratch;		       /* scratch_bytes(call) bytes, 64-byte aligned; only during run() */
	void *plan;		       /* what the kernel's plan() makes, KERNEL_PLAN_BYTES */
	const void *pack;	       /* what the kernel's pack() made; 64-byte aligned; only during run() */
	struct kernel_counts counts;
	struct kernel_progress *progress; /* NULL where nobody looks */
	const struct kernel_crew *crew;	  /* NULL: nobody helps */
	struct walk_team *team;		  /* of walk.h, and this thread's number in it; NULL: nobody shares it */
	unsigned number;
};

struct kernel {
	int number;
	/* True where out may be the very tensor of an input: elements map one to one. Where both are reached by
	 * feature an element must be read before it is written. Where all roles are, and all operands have one
	 * shape, elements may come in another order: what is packed in a word lies side by side along W. */
	bool in_place;
	/* The last role is the output, and run() is one walk of walk.h over it, which threads may share. */
	bool walks;
	/* Bit r: role r of the row is reached by kernel_feature() alone; `data` may be NULL. */
	uint32_t by_feature;
	/* Shapes, types, formats and parameters: 0, or INVALID naming role and value. Roles that the row requires
	 * are present; parameters are among the row's and have a permitted number of values, which are among their
	 * choices. */
	int (*check)(const struct kernel_call *call, struct npumem_error *error);
	/* NULL where no data is refused. Runs after check() passed and the inputs were gathered (operands' data is
	 * set), before anything is written: 0, or INVALID naming role and position. */
	int (*check_data)(const struct kernel_call *call, struct npumem_error *error);
	/* NULL, or makes call->plan, which may point to the call, of all but data: after check() passed, before
	 * what follows. */
	void (*plan)(struct kernel_call *call);
	/* NULL where none is needed. */
	size_t (*scratch_bytes)(const struct kernel_call *call);
	/* NULL, or how many bytes pack() needs; 0: nothing is packed, run() reads all roles. */
	size_t (*pack_bytes)(const struct kernel_call *call);
	/* Makes of the roles in `packed` (bit r: role r of the row; two at most that a call has), whose data is
	 * set, all that run() then has of them: call->pack, which may be what an earlier run made of the same
	 * elements for a call of the same types, shapes and parameters. False where the rest is no longer wanted.
	 */
	bool (*pack)(const struct kernel_call *call, void *pack);
	uint32_t packed;
	/* About how many element steps that takes for each element; 0: 2. */
	unsigned pack_steps;
	/* About how many element steps (op_cost's unit) a run takes that has its pack, if it has any, and its
	 * operands where they are needed; rather too many: the loop itself runs what is short. Of features
	 * it knows start_npu and n_npus alone. */
	int64_t (*steps)(const struct kernel_call *call);
	/* Cannot fail. Writes every element of every output and sets call->counts. Calls kernel_step as outputs
	 * are done and kernel_part while they are made, at least once in kernel_piece() steps of work, and returns
	 * when one of them says so; the outputs then count as never written. */
	void (*run)(struct kernel_call *call);
};

/* The kernel of a row number, or NULL. */
const struct kernel *kernel_by_number(int number);

/* Before the run: what it will do, in elements. */
static inline void kernel_begin(struct kernel_progress *progress, int64_t elements)
{
	progress->told = 0;
	atomic_store_explicit(&progress->done, 0, memory_order_relaxed);
	atomic_store_explicit(&progress->total, elements * KERNEL_PARTS, memory_order_release);
}

static inline void kernel_give_way(struct kernel_progress *progress)
{
	if (progress->give_way)
		progress->give_way(progress->give_way_ctx);
}

/* What the last look of any thread said, without another one. */
static inline bool kernel_cancelled(const struct kernel_progress *progress)
{
	return progress &&
	       (atomic_load_explicit(&progress->cancelled, memory_order_relaxed) ||
		(progress->whole && atomic_load_explicit(&progress->whole->cancelled, memory_order_relaxed)));
}

/* False where the rest is no longer wanted. `progress`: NULL where nobody looks. */
static inline bool kernel_wanted(struct kernel_progress *progress)
{
	if (!progress)
		return true;
	if (progress->looked)
		progress->looked(progress);
	kernel_give_way(progress);
	return !kernel_cancelled(progress);
}

/* Elements of any operand, or products, between two looks. */
static inline int64_t kernel_piece(const struct kernel_call *call)
{
	return call->progress && call->progress->piece ? call->progress->piece : KERNEL_PIECE;
}

static inline void kernel_tell(struct kernel_progress *progress, int64_t parts)
{
	atomic_fetch_add_explicit(&progress->done, parts - progress->told, memory_order_relaxed);
	progress->told = parts;
}

/* Tells that `elements` more of the outputs are done. False where the rest is no longer wanted. */
static inline bool kernel_step(const struct kernel_call *call, int64_t elements)
{
	if (!call->progress)
		return true;
	if (elements)
		atomic_fetch_add_explicit(&call->progress->done, elements * KERNEL_PARTS - call->progress->told,
					  memory_order_relaxed);
	/* Threads that share a kernel never tell of parts of an element, and then only read it. */
	if (elements && call->progress->told)
		call->progress->told = 0;
	return kernel_wanted(call->progress);
}

/* Work that is not told: whether the rest is wanted, asked after `steps` more of it, where it is time. *pending
 * begins with 0. */
static inline bool kernel_look(const struct kernel_call *call, int64_t steps, int64_t *pending)
{
	*pending += steps;
	if (*pending < kernel_piece(call))
		return true;
	*pending = 0;
	return kernel_wanted(call->progress);
}

/* Of `left` elements as many as one look may be for. */
static inline int64_t kernel_stretch(const struct kernel_call *call, int64_t left)
{
	int64_t piece = kernel_piece(call);
	return left < piece ? left : piece;
}

/* Zeroes memory, which may be as long as the largest operand, and looks as kernel_look. */
bool kernel_clear(const struct kernel_call *call, void *to, int64_t bytes, int64_t *pending);

/* Tells that of the work for the next `elements` outputs `done` of `total` is done; never less than was told of
 * them before. False where the rest is no longer wanted. */
static inline bool kernel_part(const struct kernel_call *call, int64_t elements, int64_t done, int64_t total)
{
	if (!call->progress)
		return true;
	int64_t parts = (int64_t)((double)elements * KERNEL_PARTS * ((double)done / (double)total));
	if (parts > call->progress->told)
		kernel_tell(call->progress, parts);
	return kernel_wanted(call->progress);
}

/* For many short rows: as kernel_step, but in pieces. *pending is what was not told yet, 0 at first; what it is in
 * the end the caller tells. */
static inline bool kernel_step_rarely(const struct kernel_call *call, int64_t elements, int64_t *pending)
{
	*pending += elements;
	if (*pending < kernel_piece(call))
		return true;
	elements = *pending;
	*pending = 0;
	return kernel_step(call, elements);
}

/* Whether other threads may take part in work of so many element steps. */
static inline bool kernel_is_shared(const struct kernel_call *call, double steps)
{
	return call->crew && call->crew->n_threads > 1 && steps >= KERNEL_SHARED_LEAST;
}

/* Cuts a kernel's work in parts that several threads take, each part a millisecond at most: work(arg, number)
 * takes parts until there is none, or kernel_part_done says so. `steps`: about how many element steps it takes in
 * all. */
static inline void kernel_share(const struct kernel_call *call, double steps,
				void (*work)(void *arg, unsigned number), void *arg)
{
	if (kernel_is_shared(call, steps))
		call->crew->share(call->crew->ctx, steps < INT32_MAX ? (int64_t)steps : INT32_MAX, work, arg);
	else
		work(arg, 0);
}

/* Whether this thread only helps, and is to take no more parts, as somebody else wants it. */
static inline bool kernel_is_wanted_elsewhere(const struct kernel_call *call)
{
	return call->crew && call->crew->is_wanted_elsewhere(call->crew->ctx);
}

/* On any of these threads: tells that `elements` more of the outputs are done. False where this thread is to take
 * no more parts, as the rest is not wanted, or somebody else wants the thread. */
static inline bool kernel_part_done(const struct kernel_call *call, int64_t elements)
{
	if (call->progress && elements)
		atomic_fetch_add_explicit(&call->progress->done, elements * KERNEL_PARTS, memory_order_relaxed);
	return kernel_wanted(call->progress) && !kernel_is_wanted_elsewhere(call);
}

/* Value i of a parameter, or `fallback` where it was not given. */
static inline int64_t kernel_param(const struct kernel_call *call, int number, unsigned i, int64_t fallback)
{
	const struct npumem_param *p = &call->params.given[number];
	return i < p->n_values ? p->values[i] : fallback;
}

#endif
