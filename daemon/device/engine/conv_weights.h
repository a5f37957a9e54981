/* Weights as micro-kernels read them, and what is known of them beforehand.
 *
 * Output channels of a group come in blocks of nearly equal numbers of rows, UKERNEL_ROWS or fewer. Sums of 32
 * bits are exact for as many steps as the weights' absolute sums allow: those are a segment, at whose end they are
 * widened. Where segments would be too short for that, weights of 16 bits are split: high * 256 + low. */
#ifndef DEVICE_CONV_WEIGHTS_H
#define DEVICE_CONV_WEIGHTS_H

#include "daemon/device/engine/ukernel.h"
#include "daemon/device/kernel_support/windows/convolution.h"

/* What a pack is made for. */
struct conv_weights_shape {
	const struct convolution *convolution;
	const struct phase *phase;
	const struct ukernel *ukernel;
	bool merged; /* a step has terms of any channels and taps, in order; else channels of one tap */
	int64_t n_steps;
	int64_t n_blocks, block_rows, n_larger; /* the first n_larger blocks have a row more */
};

struct conv_weights_head {
	int64_t most;		     /* the largest sum of absolute weights of an output channel */
	int64_t n_segments, n_parts; /* 2 where weights are split */
};

/* One stretch of memory. */
struct conv_weights {
	struct conv_weights_head *head;
	int64_t *sums;	/* of the weights of each output channel */
	int64_t *ends;	/* of the segments, in steps */
	uint8_t *steps; /* [part][group][block][step][row] */
	int64_t part_bytes;
};

/* Lays a pack out in `memory` and returns its size; NULL: only that. */
size_t conv_weights_init(struct conv_weights *weights, const struct conv_weights_shape *shape, void *memory);
/* False where it is no longer wanted. */
bool conv_weights_pack(struct conv_weights *weights, const struct conv_weights_shape *shape);

/* Blocks of a group, and its rows before block b (and, for b their number, all of them). */
static inline int64_t conv_weights_n_blocks(int64_t n_outputs)
{
	return (n_outputs + UKERNEL_ROWS - 1) / UKERNEL_ROWS;
}
static inline int64_t conv_weights_first_row(const struct conv_weights_shape *shape, int64_t block)
{
	return block * shape->block_rows + (block < shape->n_larger ? block : shape->n_larger);
}
/* Sets these numbers. */
void conv_weights_cut(struct conv_weights_shape *shape);

/* Steps [first, ...) of a block, of a part. */
static inline const uint8_t *conv_weights_at(const struct conv_weights *weights,
					     const struct conv_weights_shape *shape, int64_t part, int64_t group,
					     int64_t block, int64_t first)
{
	int64_t row = conv_weights_first_row(shape, block);
	int64_t rows = conv_weights_first_row(shape, block + 1) - row;
	return weights->steps + part * weights->part_bytes +
	       ((group * shape->convolution->n_outputs + row) * shape->n_steps + first * rows) *
		       UKERNEL_STEP_BYTES;
}

#endif
