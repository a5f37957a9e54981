/* An array of a file as numbers, whatever NumPy wrote it as: integers of 8 to 64 bits, float16 to float64, of
 * either byte order, C or Fortran order, .npy or in an .npz. */
#ifndef CTL_CORE_VALUES_H
#define CTL_CORE_VALUES_H

#include <jansson.h>
#include <stdio.h>

#include <npumem/layout.h>

#include "client/ctl/core/arrays/npy.h"

struct values {
	unsigned n_dims;
	int64_t shape[NPY_DIMS_MAX];
	size_t n;
	bool is_real;
	int dtype;    /* the element type that holds them as they are; 0: none */
	double *data; /* dense, row-major */
};

/* Reads "FILE.npy", "FILE.npz", "FILE.npz:NAME" or "-", an .npy on stdin. `perm`: NULL, or as numpy.transpose has
 * it, "1,0,2,3": dimension i of the result is dimension perm[i] of the file. 0; INVALID, naming the file;
 * RESOURCE_EXHAUSTED. */
int values_read(const char *path, const char *perm, struct values *values, struct npumem_error *error);

/* True where a word is a file's name to values_read, and no tensor's. */
bool values_is_file(const char *word);

/* N,C,H,W: four dimensions as they are; C,H,W; two as [n,c,1,1]; one as [1,c,1,1], a bias. 0 or INVALID. */
int values_shape(const struct values *values, struct npumem_dims *shape, struct npumem_error *error);

/* Into the containers of a tensor's type: real numbers are rounded to fixed point (*saturated counts), or to fp32;
 * integers are those of the container. 0; INVALID: real numbers for integers, integers out of range or for fp32, a
 * NaN for fixed point; the message has the place. */
int values_encode(const struct values *values, int dtype, int64_t frac_bits, int rounding, void *containers,
		  int64_t *saturated, struct npumem_error *error);
/* Rows of numbers that line up, with a line of the index before each plane of the last two dimensions. `n_dims` 2
 * to 4. */
void values_print(FILE *out, const struct values *values);
/* Nested arrays of numbers; NaN and infinities are null. */
json_t *values_json(const struct values *values);
/* The other way: a tensor's containers as numbers; fixed point as real ones. `values` has n_dims, shape, n and
 * room for data. */
void values_decode(const void *containers, int dtype, int64_t frac_bits, struct values *values);

#endif
