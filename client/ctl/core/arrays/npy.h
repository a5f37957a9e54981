/* NumPy's .npy files: one dense array. */
#ifndef CTL_CORE_NPY_H
#define CTL_CORE_NPY_H

#include <stdio.h>

#include <npumem/types.h>

enum { NPY_DIMS_MAX = 8, NPY_DESCR_BYTES = 16 };

/* What a file's header says. */
struct npy {
	char descr[NPY_DESCR_BYTES]; /* "<i2" */
	unsigned n_dims;
	int64_t shape[NPY_DIMS_MAX];
	bool fortran; /* the first dimension runs fastest */
};

/* NumPy's name of an element type's container: "<i2" for fx16. */
const char *npy_descr(int dtype);

/* Reads the header; the data follows. 0 or INVALID, with what is wrong and what was expected. */
int npy_read_header(FILE *file, struct npy *npy, struct npumem_error *error);
/* The array must be in C order. 0 or INVALID. */
int npy_check_order(const struct npy *npy, struct npumem_error *error);
/* Whether two shapes are equal apart from extents of 1. Those do not change where an element lies in a dense
 * array. At most NPY_DIMS_MAX extents each. */
bool npy_same_extents(const int64_t *a, unsigned n_a, const int64_t *b, unsigned n_b);
/* The array must have this element type, and this shape apart from extents of 1. 0 or INVALID, naming both. */
int npy_check_type(const struct npy *npy, const char *descr, struct npumem_error *error);
int npy_check_shape(const struct npy *npy, const int64_t *shape, unsigned n_dims, struct npumem_error *error);
/* Reads exactly `bytes` bytes of data, after which the file must end. */
int npy_read_data(FILE *file, void *data, size_t bytes, struct npumem_error *error);

/* Writes version 1. 0 or INTERNAL: the file could not be written. */
int npy_write(FILE *file, const char *descr, const int64_t *shape, unsigned n_dims, const void *data, size_t bytes,
	      struct npumem_error *error);

/* "(1, 2, 3, 4)", as Python writes it. */
const char *npy_shape_text(const int64_t *shape, unsigned n_dims, char *text, size_t bytes);
/* The same of the index of element `at` of a dense array of this shape. */
const char *npy_index_text(const int64_t *shape, unsigned n_dims, size_t at, char *text, size_t bytes);

#endif
