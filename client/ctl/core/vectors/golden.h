/* A run that was seen, as a golden vector: the inverse of mapping.h. */
#ifndef CTL_CORE_GOLDEN_H
#define CTL_CORE_GOLDEN_H

#include "client/ctl/core/vectors/vectors.h"

struct golden_tensor {
	const char *role;
	int dtype, mode;
	int64_t frac_bits;	  /* NPUMEM_ANY: none */
	struct npumem_dims shape; /* a matrix: rows, cols, 1, 1 */
	const void *data;	  /* dense, row-major, in the container's type */
};

struct golden {
	const struct npumem_kernel_row *row;
	const struct npumem_param *params;
	unsigned n_params;
	int rounding; /* the device's, for a run that names none */
	struct golden_tensor tensors[NPUMEM_OPERANDS_MAX];
	unsigned n_tensors;
};

/* 0, or INVALID: why a golden vector cannot hold the tensor (its type, its size). Does not look at its data. */
int golden_check(const struct golden_tensor *tensor, struct npumem_error *error);

/* A new case named KERNEL/DTYPE/recordedNUMBER@ROUNDING of tensors that passed the check. */
json_t *golden_case(const struct golden *golden, unsigned number);

#endif
