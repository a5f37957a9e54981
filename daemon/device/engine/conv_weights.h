/* Weights as micro-kernels read them, and what is known of them beforehand.
 *
 * Output channels of a group come in blocks of nearly equal size: of the micro-kernel's rows or fewer, or, where
 * pixels are the rows, of UKERNEL_OUTPUTS or fewer, in whole vectors, whose end may be nobody's. Sums of 32 bits
 * are exact for as many steps as the weights' absolute sums allow: those are a segment, at whose end they are
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
	bool merged;	/* a step has terms of any channels and taps, in order; else channels of one tap */
	bool by_pixels; /* the other way round; steps of a row of taps follow each other */
	int64_t n_steps;
	int64_t unit;				 /* of blocks: one channel, or a vector */
	int64_t n_slots;			 /* channels of a group, up to whole units */
	int64_t n_blocks, block_units, n_larger; /* the first n_larger blocks have a unit more */
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
	int32_t *taps;	/* by_pixels, of unsigned data: [tap][group][slot], the sum of its weights */
	uint8_t *steps; /* [part][group][block], slots being the rows of ukernel_weight(), or what is made of them
			 */
	int64_t part_bytes;
};

/* Lays a pack out in `memory` and returns its size; NULL: only that. */
size_t conv_weights_init(struct conv_weights *weights, const struct conv_weights_shape *shape, void *memory);
/* False where it is no longer wanted. */
bool conv_weights_pack(struct conv_weights *weights, const struct conv_weights_shape *shape);

/* Cuts a group's channels into blocks. */
void conv_weights_cut(struct conv_weights_shape *shape);
/* The slots of a group before a block, or, for n_blocks, all. */
static inline int64_t conv_weights_first_slot(const struct conv_weights_shape *shape, int64_t block)
{
	int64_t larger = block < shape->n_larger ? block : shape->n_larger;
	return (block * shape->block_units + larger) * shape->unit;
}
/* The same of its output channels. */
static inline int64_t conv_weights_first(const struct conv_weights_shape *shape, int64_t block)
{
	int64_t slot = conv_weights_first_slot(shape, block), n = shape->convolution->n_outputs;
	return slot < n ? slot : n;
}
static inline int64_t conv_weights_n_slots(const struct conv_weights_shape *shape, int64_t block)
{
	return conv_weights_first_slot(shape, block + 1) - conv_weights_first_slot(shape, block);
}

/* Bytes of n blocks that have so many slots. */
static inline int64_t conv_weights_bytes(const struct conv_weights_shape *shape, int64_t n, int64_t slots)
{
	int64_t put = slots * shape->n_steps * UKERNEL_STEP_BYTES;
	return shape->ukernel->arrange ? n * ukernel_order_bytes(shape->n_steps) + 2 * put : put;
}
/* Steps [first, ...) of a block, of a part; `first` begins a group of steps. */
static inline const uint8_t *conv_weights_at(const struct conv_weights *weights,
					     const struct conv_weights_shape *shape, int64_t part, int64_t group,
					     int64_t block, int64_t first)
{
	int64_t slot = group * shape->n_slots + conv_weights_first_slot(shape, block);
	return weights->steps + part * weights->part_bytes +
	       conv_weights_bytes(shape, group * shape->n_blocks + block, slot) +
	       first * conv_weights_n_slots(shape, block) * UKERNEL_STEP_BYTES;
}

#endif
