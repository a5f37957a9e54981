/* The broadcast side of a product, made in each run, and the sums of both.
 *
 * Rows come in blocks of nearly equal numbers, the micro-kernel's or fewer. Sums of 32 bits are exact for as many
 * steps as the largest data and the largest weight allow: a segment, at whose end they are widened. Where segments
 * would be too short for that, data of 16 bits is split: high * 256 + low. */
#ifndef DEVICE_PRODUCT_DATA_H
#define DEVICE_PRODUCT_DATA_H

#include "daemon/device/engine/product_weights.h"

enum { PRODUCT_BLOCK = UKERNEL_ROWS_MAX * UKERNEL_COLUMNS };

struct product_data {
	const struct product_weights *weights;
	int64_t n_rows;
	int64_t bound;	   /* no sum is more than this, either way */
	int64_t n_parts;   /* 2 where data is split */
	int64_t steps_max; /* between two looks */
	int64_t segment;   /* steps, steps_max at most */

	/* In scratch. */
	uint32_t *offsets[2]; /* of steps in a whole strip, and in the last one */
	int64_t *excess;      /* of each row: what its sums have too much */
	uint8_t *steps;	      /* [part][block], each as ukernel_weight() has it */
	int64_t part_bytes;
};

/* Lays out what rows up to `rows_max` need in `scratch`, 64-byte aligned, and returns its size, a multiple of 64;
 * NULL: only that. */
size_t product_data_init(struct product_data *data, const struct product_weights *weights, int64_t rows_max,
			 void *scratch);
/* Rows of K elements; weights are packed. False where the rest is no longer wanted. */
bool product_data_pack(struct product_data *data, const struct kernel_call *call, const void *rows,
		       int64_t n_rows);

static inline int64_t product_data_n_blocks(const struct product_data *data)
{
	int64_t rows = data->weights->ukernel->rows;
	return (data->n_rows + rows - 1) / rows;
}

/* Rows before a block; that of the last but one is n_rows. */
static inline int64_t product_data_first_row(const struct product_data *data, int64_t block)
{
	return data->n_rows * block / product_data_n_blocks(data);
}

/* Whether 32 bits hold all sums, and `more`. */
static inline bool product_data_is_narrow(const struct product_data *data, int64_t more)
{
	return data->weights->ukernel->block && data->bound <= INT32_MAX - more && data->n_parts == 1 &&
	       data->weights->n_steps <= data->steps_max;
}

/* Sums of a block and a strip as ukernel.h has them, with the excess of their rows: where they are narrow. */
void product_data_sums32(const struct product_data *data, int64_t strip, int64_t block, int32_t *sums);
/* Of `n_steps` from `step` on, no more than a segment, added to what `wide` has of the steps before; `sums` is
 * workspace. */
void product_data_add64(const struct product_data *data, int64_t strip, int64_t block, int64_t step,
			int64_t n_steps, int32_t *sums, int64_t *wide);

#endif
