/* What the files of conv.h share: how a phase is run, and where in scratch memory it keeps what. */
#ifndef DEVICE_CONV_PLAN_H
#define DEVICE_CONV_PLAN_H

#include "daemon/device/engine/conv_weights.h"
#include "daemon/device/engine/flat.h"

/* How sums become results. */
struct conv_result {
	bool narrow; /* sums of 32 bits hold everything */
	bool direct; /* the micro-kernel's store does it, else fixed/ */
	bool has_bias;
	struct accumulator accumulator;
	struct requantize requantize;
};

struct conv_plan {
	const struct convolution *convolution;
	const struct phase *phase;
	const struct ukernel *ukernel;
	struct flat flat;
	struct conv_weights_shape shape;
	int64_t n_packed, packed_bytes; /* packed lines of a group, and the way from one to the next */
	int64_t n_lines;		/* planes that are spread before they are packed */

	/* In scratch. */
	struct conv_weights weights;
	struct conv_result result;
	uint32_t *offsets; /* of each step in `data` */
	int64_t *totals;   /* what is added to the sums of each output channel */
	uint8_t **outs;	   /* features of a group's output channels */
	uint8_t *lines;	   /* the last one is zeros */
	uint8_t *data;
};

/* What a thread has by itself. */
struct conv_worker {
	int32_t *sums;
	int64_t *wide;
	uint8_t *staging;	/* results on their way to places that do not follow each other */
	int64_t elements, work; /* since it was told and looked */
	struct kernel_counts counts;
};

/* Adds up work (products) and outputs; tells and looks where it is time. False: no longer wanted. */
bool conv_look(const struct conv_plan *plan, struct conv_worker *worker, int64_t elements, int64_t work);

/* ---- conv_pack.c ---- */

void conv_pack_offsets(const struct conv_plan *plan);
/* The data of one group. False: no longer wanted. */
bool conv_pack(const struct conv_plan *plan, struct conv_worker *worker, int64_t batch, int64_t group);

/* ---- conv_store.c ---- */

/* After the weights are packed. */
void conv_store_init(struct conv_plan *plan);
/* Turns a block's sums into results. `first`: which output of the feature the strip's first real column is; row 0
 * is output channel `o` of all, `row` of its group. */
void conv_store(const struct conv_plan *plan, struct conv_worker *worker, const struct ukernel_strip *strip,
		int64_t first, int64_t o, int64_t row, unsigned rows);

#endif
