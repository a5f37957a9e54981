/* How a golden vector becomes a run: where the dimensions of its tensors go in N,C,H,W, and what its parameters
 * are called here. Tables: another kernel family needs a row where it has names of its own. */
#ifndef CTL_CORE_MAPPING_H
#define CTL_CORE_MAPPING_H

#include "client/ctl/core/vectors/vectors.h"

/* The N,C,H,W of a vector's tensor, and which of the vector's dims each is (-1: extent 1). */
struct mapping {
	struct npumem_dims shape;
	int from[4];
};
/* 0 or INVALID: no row for these dims. */
int mapping_tensor(const struct vectors_case *one, const struct vectors_tensor *tensor, struct mapping *mapping,
		   struct npumem_error *error);
/* Reorders between the vector's order and N,C,H,W: to[i] is for element i in N,C,H,W order; the container's type.
 */
void mapping_pack(const struct vectors_tensor *tensor, const struct mapping *mapping, void *to);
/* The expected value at element i in N,C,H,W order. */
int64_t mapping_expected(const struct vectors_tensor *tensor, const struct mapping *mapping, size_t i);
/* The inverse, for a vector that is yet to be written: the dims named so, of a tensor that lies as `shape`. Sets
 * dims, shape and n of `tensor`. False where `kernel` has no such dims, or they leave out an extent above 1. */
bool mapping_dims(const char *kernel, const char *dims, const struct npumem_dims *shape,
		  struct vectors_tensor *tensor, struct mapping *mapping);
/* Fills tensor->data, tensor->n long, from a container array in N,C,H,W order. */
void mapping_unpack(const struct vectors_tensor *tensor, const struct mapping *mapping, const void *from);
/* Element i of a container array. */
int64_t mapping_value(int dtype, const void *data, size_t i);

/* The parameters of a run, rounding included. 0 or INVALID, naming the one that has no meaning here. */
int mapping_params(const struct vectors_case *one, const struct npumem_kernel_row *row,
		   struct npumem_param *params, unsigned *n_params, struct npumem_error *error);
/* True where a tensor of that role already says the parameter, so that a case must not say it again. */
bool mapping_implies(const char *kernel, const char *role, const char *param);

#endif
