/* What the files of conv.h share: how a phase is run, and where in scratch memory it keeps what. */
#ifndef DEVICE_CONV_PLAN_H
#define DEVICE_CONV_PLAN_H

#include "daemon/device/engine/conv_weights.h"
#include "daemon/device/engine/flat.h"
#include "daemon/device/kernel_support/ranges.h"

/* How sums become results. */
struct conv_result {
	bool narrow;   /* sums of 32 bits hold everything */
	bool parts;    /* those of each segment and part of the weights, and the micro-kernel's store joins them */
	bool direct;   /* the micro-kernel's store does it, else fixed/ */
	bool is_small; /* of a struct ukernel_result */
	bool has_bias;
	struct accumulator accumulator;
	struct requantize requantize;
};

/* Outputs that are summed together, and which of a feature's the first one is. */
struct conv_strip {
	struct ukernel_strip columns;
	int64_t first;
};

struct conv_plan {
	const struct convolution *convolution;
	const struct phase *phase;
	const struct ukernel *ukernel;
	const struct ukernel *pixels; /* of blocks whose rows are pixels; NULL: they are not */
	struct flat flat;
	struct conv_weights_shape shape;
	int64_t n_packed, packed_bytes; /* packed lines of a group, and the way from one to the next */
	int64_t n_beyond;		/* lines that steps which fill up see behind the last group's */
	int64_t n_lines;		/* of a worker: planes that are spread before they are packed */
	int64_t n_workers;
	int64_t n_strips;
	/* A tile is of some strips and all blocks of their output channels, or of one strip and some blocks. */
	int64_t tile_strips, tile_blocks, strip_tiles, group_tiles;

	/* In scratch. */
	struct conv_weights weights;
	struct conv_result result;
	struct conv_strip *strips;
	uint32_t *offsets; /* of each step in a group's data */
	int64_t *totals;   /* what is added to the sums of each output channel */
	uint8_t **outs;	   /* features of all output channels */
	uint8_t *zeros;	   /* a line */
	uint8_t *lines;	   /* of all workers; where steps are merged of all channels */
	uint8_t *data;	   /* of all groups, one after the other */
	int64_t batch;	   /* which is run */
	int64_t pending;   /* work since the running thread looked, but what the workers have */
};

/* A sum of a strip's outputs from `first` on: over the steps [start, end) of one part of a block's weights. */
struct conv_steps {
	const struct ukernel_strip *strip;
	int64_t first;
	const uint8_t *data; /* the group's; where pixels are not the rows, of the strip */
	int64_t group, block, part, start, end;
	unsigned rows;
};

static inline const uint8_t *conv_steps_weights(const struct conv_plan *plan, const struct conv_steps *steps)
{
	return conv_weights_at(&plan->weights, &plan->shape, steps->part, steps->group, steps->block,
			       steps->start);
}

/* What a thread has by itself. */
struct conv_worker {
	const struct conv_plan *plan;
	/* Of a block: UKERNEL_COLUMNS for each output channel. */
	int32_t sums[UKERNEL_OUTPUTS * UKERNEL_COLUMNS] __attribute__((aligned(64)));
	/* Where pixels are rows: UKERNEL_OUTPUTS for each pixel, before they are turned. Where sums
	 * come in parts: these, UKERNEL_PART from one to the next. */
	int32_t others[UKERNEL_OUTPUTS * UKERNEL_COLUMNS] __attribute__((aligned(64)));
	int64_t wide[UKERNEL_OUTPUTS * UKERNEL_COLUMNS] __attribute__((aligned(64)));
	/* Results on their way to places that do not follow each other. */
	int16_t staging[UKERNEL_OUTPUTS * UKERNEL_COLUMNS] __attribute__((aligned(64)));
	uint8_t *lines;
	bool has_lines;	 /* they were zeroed */
	int64_t pending; /* work since it looked */
	struct kernel_counts counts;
};

/* ---- conv_team.c ---- */

enum { CONV_WORKERS_MAX = RANGES_MAX };

/* One part of the work; how many outputs are done with it, or less than 0 where it was stopped. */
typedef int64_t conv_part(struct conv_worker *worker, int64_t part);
/* Runs parts 0 to n_parts - 1 in any order, each on one of several threads where so many element steps are worth
 * it. False: no longer wanted. */
bool conv_team_run(const struct conv_plan *plan, conv_part *part, int64_t n_parts, double steps);
/* Inside a part, where it may be long: false where it is to stop. `elements`: what was moved since. */
bool conv_team_look(struct conv_worker *worker, int64_t elements);

/* The same outside parts. */
static inline bool conv_look(struct conv_plan *plan, int64_t steps)
{
	return kernel_look(plan->convolution->call, steps, &plan->pending);
}

/* ---- conv_pack.c ---- */

/* Of the data of one n. */
double conv_pack_steps(const struct conv_plan *plan);
/* Each false where it is no longer wanted. */
bool conv_pack_offsets(struct conv_plan *plan);
/* The data of one n. */
bool conv_pack(const struct conv_plan *plan);

/* ---- conv_pixels.c: blocks whose rows are pixels ---- */

/* Sets plan->pixels where such blocks have less to do, the plan's other numbers being known. */
void conv_pixels_choose(struct conv_plan *plan);
/* These are for a plan that has pixels. */
int64_t conv_pixels_n_strips(const struct conv_plan *plan);
/* Strip i: whole rows of outputs, or a piece of a longer one. */
struct conv_strip conv_pixels_strip(const struct conv_plan *plan, int64_t i);
/* Sums of 32 bits. */
void conv_pixels_sum(struct conv_worker *worker, const struct conv_steps *steps, int32_t *sums);

/* ---- conv_store.c ---- */

/* After the weights are packed. False: no longer wanted. */
bool conv_store_init(struct conv_plan *plan);
/* Turns sums into results, as the plan has it those of 32 bits at `sums`, which are used up, or in worker->others
 * or worker->wide. Row 0 is output channel `o`. */
void conv_store(struct conv_worker *worker, const struct conv_strip *strip, int64_t o, unsigned rows,
		int32_t *sums);

#endif
