/* Tensors and .npy files: streams in one piece. */
#include "client/ctl/core/arrays/stream.h"

#include <errno.h>
#include <string.h>

int array_of(const struct npumem_tensor *tensor, struct array *array, struct npumem_error *error)
{
	const struct npumem_place *p = &tensor->place;
	if (!p->dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not this uid's to see", tensor->name);
	array->n_dims = stream_shape(p, array->shape);
	array->n = (size_t)npumem_place_elements(p);
	array->bytes = array->n * npumem_dtype_bytes(p->dtype);
	return 0;
}

int array_load(const char *path, const struct npumem_place *place, const struct array *array, bool quantize,
	       int rounding, void *data, int64_t *saturated, struct npumem_error *error)
{
	struct stream stream;
	int status = stream_open(&stream, path, place, quantize, rounding, error);
	if (status)
		return status;
	status = stream_read(&stream, data, array->n, error);
	*saturated = stream.saturated;
	return stream_close(&stream, status, error);
}

int array_save(const char *path, const struct npumem_place *place, const struct array *array, bool dequantize,
	       const void *data, struct npumem_error *error)
{
	struct stream_dims dims = {.n = array->n_dims};
	struct stream stream;
	FILE *file = strcmp(path, "-") ? fopen(path, "wb") : stdout;
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	memcpy(dims.extent, array->shape, sizeof(array->shape));
	int status = stream_create(&stream, file, path, place, dequantize, &dims, error);
	if (status)
		return status;
	status = stream_write(&stream, data, array->n, error);
	return stream_close(&stream, status, error);
}
