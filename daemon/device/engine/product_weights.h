/* The packed side of a product of matrices: data R x K times weights K x M.
 *
 * Weights take the place that a convolution's pixels have (ukernel.h): columns are packed in lines of steps, a
 * strip of UKERNEL_COLUMNS after the other, so that a strip is read from its first to its last byte. Rows of data
 * are what is broadcast. Weights of 8 bits are widened where data has 16. */
#ifndef DEVICE_PRODUCT_WEIGHTS_H
#define DEVICE_PRODUCT_WEIGHTS_H

#include "daemon/device/engine/ukernel.h"
#include "daemon/device/operations/kernel.h"

struct product_weights_head {
	int64_t most; /* the largest absolute weight */
};

struct product_weights {
	const struct ukernel *ukernel;
	unsigned data_bytes, weight_bytes;
	int64_t terms, columns; /* K and M */
	int64_t n_steps;
	/* In the pack, which is 64-byte aligned. */
	struct product_weights_head *head;
	uint8_t *steps; /* [strip][step][column] */
};

/* data_bytes and weight_bytes: 1 and 1, 2 and 2, or 2 and 1. `pack`: NULL, or where it lies. */
void product_weights_init(struct product_weights *weights, enum isa isa, unsigned data_bytes,
			  unsigned weight_bytes, int64_t terms, int64_t columns, void *pack);
/* Of a pack, a multiple of 64. */
size_t product_weights_bytes(const struct product_weights *weights);
/* `matrix` is K x M, row-major. False where the rest is no longer wanted. */
bool product_weights_pack(const struct product_weights *weights, const struct kernel_call *call,
			  const void *matrix);

/* The larger of `most` and the largest absolute value of n elements. */
int64_t product_weights_larger(int64_t most, const int16_t *line, int64_t n);

static inline int64_t product_weights_n_strips(const struct product_weights *weights)
{
	return (weights->columns + UKERNEL_COLUMNS - 1) / UKERNEL_COLUMNS;
}

/* Columns of a strip. */
static inline unsigned product_weights_real(const struct product_weights *weights, int64_t strip)
{
	int64_t left = weights->columns - strip * UKERNEL_COLUMNS;
	return left < UKERNEL_COLUMNS ? (unsigned)left : UKERNEL_COLUMNS;
}

/* The same with what is behind them up to a vector. */
static inline unsigned product_weights_width(const struct product_weights *weights, int64_t strip)
{
	return (product_weights_real(weights, strip) + UKERNEL_VECTOR - 1) / UKERNEL_VECTOR * UKERNEL_VECTOR;
}

static inline uint8_t *product_weights_at(const struct product_weights *weights, int64_t strip, int64_t step)
{
	return weights->steps +
	       (strip * UKERNEL_COLUMNS * weights->n_steps + step * product_weights_width(weights, strip)) *
		       UKERNEL_STEP_BYTES;
}

#endif
