/* Sums of products of a vector with a matrix of weights that is read as it lies: exact, wider than the hardware's
 * accumulator, into whose width sums.h folds them afterwards. For products whose weights are used once or a few
 * times in a run, so that packing them first (engine/product.h) would cost more than it saves.
 *
 * The scalar functions are the definition; those of other instruction sets are written once, in vectors/gemv.c. */
#ifndef DEVICE_GEMV_H
#define DEVICE_GEMV_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* Bytes of an element of the vector and of the weights: 1 and 1, 2 and 2, or 2 and 1. */
struct gemv {
	const void *vector;
	unsigned vector_bytes;
	const void *weights;
	unsigned weight_bytes;
	int64_t n_terms; /* elements of the vector */
	int64_t row;	 /* from one row of weights to the next, in elements */
};

/* sums[i] += the vector times row i, i below n. */
void gemv_rows(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums);
/* sums[j] += the vector times column j, j below n. */
void gemv_columns(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums);

/* Of one instruction set: those of as many terms, or columns, as it can; returns how many. */
struct gemv_functions {
	int64_t (*rows)(const struct gemv *gemv, int64_t n, int64_t *sums);
	int64_t (*columns)(const struct gemv *gemv, int64_t n, int64_t *sums);
};

#endif
