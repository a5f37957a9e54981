/* The walk of kernels whose elements map one to one: pieces of rows of elements that follow each other in every
 * operand, features or, where all operands are dense, everything in one.
 *
 *	struct walk walk;
 *	for (walk_begin(&walk, call, OUT); walk_next(&walk);)
 *		… walk_at(&walk, operand), walk.n elements …
 *
 * Progress is told, and the walk ends early where the rest is no longer wanted. Of a kernel that says so threads
 * share the walk: each has a copy of the call, and bands of the rows, as convolutions have spans of pixels. */
#ifndef DEVICE_WALK_H
#define DEVICE_WALK_H

#include "daemon/device/operations/kernel.h"

struct walk {
	const struct kernel_call *call;
	bool dense;
	int64_t batches, channels, length; /* rows, and elements of each */
	int64_t batch, channel, i, n;	   /* the piece is [i, i + n) of a row */
	int64_t row, end_row, first,
		end; /* rows of this part, counted through all batches, and the band of each */
	int64_t pending;
};

/* Runs a call: kernel->run, on several threads where that is worth it and kernel->walks. */
void walk_run(const struct kernel *kernel, struct kernel_call *call);

/* `role` is an output. */
void walk_begin(struct walk *walk, const struct kernel_call *call, unsigned role);
/* Likewise, but features are told apart where the operands are dense, too. */
void walk_begin_features(struct walk *walk, const struct kernel_call *call, unsigned role);
bool walk_next(struct walk *walk);

/* Where the piece begins in an operand of the output's shape. */
static inline void *walk_at(const struct walk *walk, const struct kernel_operand *operand)
{
	uint8_t *row = walk->dense ? operand->data : kernel_feature(operand, walk->batch, walk->channel);
	return row + walk->i * npumem_dtype_bytes(operand->dtype);
}

#endif
