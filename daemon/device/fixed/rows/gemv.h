/* Sums of products of a vector with a matrix of weights: exact, wider than the hardware's accumulator, into whose
 * width sums.h folds them afterwards. For one vector at a time; engine/product.h is for many.
 *
 * The scalar function is the definition; those of other instruction sets are written once, in vectors/gemv.c. */
#ifndef DEVICE_GEMV_H
#define DEVICE_GEMV_H

#include <stdbool.h>
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
	/* Two rows lie column by column, as a multiplication of two terms at once reads them: element 0 of both,
	 * element 1 of both, … `row` is still that of one. An odd last row has one of zeros. */
	bool pairs;
};

/* sums[j] += the vector times column j, j below n. */
void gemv_columns(enum isa isa, const struct gemv *gemv, int64_t n, int64_t *sums);

#endif
