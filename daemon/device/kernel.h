/* A kernel, as the device sees it: one pure function over dense operands, and the check before it.
 *
 * The device gathers each input from local memory into a dense row-major array (so a kernel never meets a
 * layout, start NPU or storage mode), calls run() with an unset array for each output, and scatters the outputs
 * back. Inputs are complete before run() starts, so in-place calls are safe for every kernel; whether they make
 * sense is the row's `in_place`. */
#ifndef DEVICE_KERNEL_H
#define DEVICE_KERNEL_H

#include <stdatomic.h>

#include <npumem/kernels.h>
#include <npumem/layout.h>

/* One tensor of a call. */
struct kernel_operand {
	int dtype;
	int64_t frac_bits;        /* 0 where the type has none */
	struct npumem_dims shape; /* a matrix R x M comes as [R, M, 1, 1] */
	void *data;               /* dense, row-major over shape, in the type's container; only during run() */
};

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
	int64_t saturated;       /* outputs that clamping to the container changed */
	int64_t wrapped;         /* accumulators whose exact sum was out of their range */
	int64_t divided_by_zero;
	int64_t macs;            /* multiply-accumulates of the formula, without padded taps */
};

/* What another thread may see and say while a kernel runs. */
struct kernel_progress {
	_Atomic int64_t done;    /* elements of the outputs */
	_Atomic bool cancelled;  /* the outputs are no longer wanted */
};

struct kernel_call {
	const struct npumem_kernel_row *row;
	struct kernel_role *roles; /* in the order of the row's roles */
	unsigned n_roles;
	struct kernel_params params;
	enum npumem_rounding rounding; /* already resolved against the device's default */
	void *scratch;                 /* scratch_bytes(call) bytes, 64-byte aligned; only during run() */
	struct kernel_counts counts;
	struct kernel_progress *progress; /* NULL where nobody looks */
};

struct kernel {
	int number;
	/* True where out may be the very tensor of an input: elements map one to one. */
	bool in_place;
	/* Shapes, types, formats and parameters: 0, or INVALID naming role and value. Roles that the row requires
	 * are present; parameters are among the row's and have a permitted number of values. */
	int (*check)(const struct kernel_call *call, struct npumem_error *error);
	/* NULL where no data is refused. Runs after check() passed and the inputs were gathered (operands' data is
	 * set), before anything is written: 0, or INVALID naming role and position. */
	int (*check_data)(const struct kernel_call *call, struct npumem_error *error);
	/* NULL where none is needed. May assume that check() passed. */
	size_t (*scratch_bytes)(const struct kernel_call *call);
	/* Cannot fail. Writes every element of every output and sets call->counts. What takes long calls kernel_step
	 * between rows, and returns when that says so; the outputs are then dropped. */
	void (*run)(struct kernel_call *call);
};

/* The kernel of a row number, or NULL. */
const struct kernel *kernel_by_number(int number);

/* Tells that `elements` more of the outputs are done. False where the rest is no longer wanted. */
static inline bool kernel_step(const struct kernel_call *call, int64_t elements)
{
	if (!call->progress)
		return true;
	atomic_fetch_add_explicit(&call->progress->done, elements, memory_order_relaxed);
	return !atomic_load_explicit(&call->progress->cancelled, memory_order_relaxed);
}

/* Value i of a parameter, or `fallback` where it was not given. */
static inline int64_t kernel_param(const struct kernel_call *call, int number, unsigned i, int64_t fallback)
{
	const struct npumem_param *p = &call->params.given[number];
	return i < p->n_values ? p->values[i] : fallback;
}

#endif
