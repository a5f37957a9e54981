/* A run that was seen, as a golden vector: the inverse of mapping.h. */
#ifndef CTL_CORE_RECORD_H
#define CTL_CORE_RECORD_H

#include "client/ctl/core/arrays/vectors.h"

struct record_tensor {
	const char *role;
	int dtype, mode;
	int64_t frac_bits;	  /* NPUMEM_ANY: none */
	struct npumem_dims shape; /* a matrix: rows, cols, 1, 1 */
	const void *data;	  /* dense, row-major, in the container's type */
};

struct record {
	const struct npumem_kernel_row *row;
	const struct npumem_param *params;
	unsigned n_params;
	int rounding; /* the device's, for a run that names none */
	struct record_tensor tensors[NPUMEM_OPERANDS_MAX];
	unsigned n_tensors;
};

/* 0, or INVALID: why a golden vector cannot hold the tensor (its type, its size). Does not look at its data. */
int record_check(const struct record_tensor *tensor, struct npumem_error *error);

/* A new case named KERNEL/DTYPE/recordedNUMBER@ROUNDING of tensors that passed the check. NULL without memory. */
json_t *record_case(const struct record *record, unsigned number);

#endif
