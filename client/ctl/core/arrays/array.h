/* A tensor as an .npy array: its shape, its size, its container. */
#ifndef CTL_CORE_ARRAY_H
#define CTL_CORE_ARRAY_H

#include <npumem/client.h>

struct array {
	int64_t shape[4];
	unsigned n_dims; /* 2 for a matrix: rows, cols */
	size_t n, bytes; /* elements, and their bytes in the tensor's container */
};

/* 0, or INVALID where the tensor cannot be seen. */
int array_of(const struct npumem_tensor *tensor, struct array *array, struct npumem_error *error);

/* A path of "-" is stdin, or stdout. */

/* Reads FILE into `data` (array->bytes long), which must have this very type and shape; with `quantize`, floats
 * are taken and rounded by `rounding`. *saturated counts. 0, INVALID or RESOURCE_EXHAUSTED; the message names the
 * file. */
int array_load(const char *path, const struct npumem_place *place, const struct array *array, bool quantize,
	       int rounding, void *data, int64_t *saturated, struct npumem_error *error);
/* The other way; with `dequantize`, as float32. */
int array_save(const char *path, const struct npumem_place *place, const struct array *array, bool dequantize,
	       const void *data, struct npumem_error *error);

#endif
