/* Tensors and .npy files. Invariant: a file is opened for writing only when all that goes into it is there. */
#include "client/ctl/core/arrays/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/arrays/npy.h"
#include "client/ctl/core/arrays/quantize.h"

int array_of(const struct npumem_tensor *tensor, struct array *array, struct npumem_error *error)
{
	const struct npumem_place *p = &tensor->place;
	if (!p->dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "%s is not this uid's to see", tensor->name);
	if (p->layout == NPUMEM_MATRIX)
		*array = (struct array){.shape = {p->rows, p->cols}, .n_dims = 2};
	else
		*array = (struct array){.shape = {p->shape.n, p->shape.c, p->shape.h, p->shape.w}, .n_dims = 4};
	array->n = (size_t)npumem_place_elements(p);
	array->bytes = array->n * npumem_dtype_bytes(p->dtype);
	return 0;
}

/* Puts the file's name before what was said about it. */
static int about_file(const char *path, const struct npumem_error *why, struct npumem_error *error)
{
	return npumem_error_set(error, why->status, "%.200s: %.280s", path, why->message);
}

/* An index of the dense array as its N,C,H,W. */
static int bad_nan(const struct array *array, size_t at, struct npumem_error *error)
{
	int64_t index[4] = {0}, rest = (int64_t)at;
	char text[128];
	for (unsigned i = array->n_dims; i-- > 0; rest /= array->shape[i])
		index[i] = rest % array->shape[i];
	return npumem_error_set(error, NPUMEM_INVALID, "the element at %s is NaN, which has no fixed-point value",
				npy_shape_text(index, array->n_dims, text, sizeof(text)));
}

static int load_reals(FILE *file, const struct npy *npy, const struct npumem_place *place,
		      const struct array *array, int rounding, void *data, int64_t *saturated,
		      struct npumem_error *error)
{
	bool is_double = !strcmp(npy->descr, "<f8");
	size_t nan_at, element = is_double ? sizeof(double) : sizeof(float), bytes;
	if (!is_double && strcmp(npy->descr, "<f4"))
		return npumem_error_set(error, NPUMEM_INVALID,
					"the array has element type %s; --quantize takes <f4 or <f8", npy->descr);
	void *reals = __builtin_mul_overflow(array->n, element, &bytes) ? NULL : malloc(bytes);
	if (!reals)
		return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %zu numbers", array->n);
	int status = npy_read_data(file, reals, bytes, error);
	if (!status && quantize_array(reals, is_double, array->n, place->dtype, place->frac_bits, rounding, data,
				      saturated, &nan_at))
		status = bad_nan(array, nan_at, error);
	free(reals);
	return status;
}

static int load(FILE *file, const struct npumem_place *place, const struct array *array, bool quantize,
		int rounding, void *data, int64_t *saturated, struct npumem_error *error)
{
	struct npy npy;
	int status = npy_read_header(file, &npy, error);
	if (!status)
		status = npy_check_order(&npy, error);
	if (!status && !quantize)
		status = npy_check_type(&npy, npy_descr(place->dtype), error);
	if (!status)
		status = npy_check_shape(&npy, array->shape, array->n_dims, error);
	if (status)
		return status;
	if (quantize)
		return load_reals(file, &npy, place, array, rounding, data, saturated, error);
	return npy_read_data(file, data, array->bytes, error);
}

int array_load(const char *path, const struct npumem_place *place, const struct array *array, bool quantize,
	       int rounding, void *data, int64_t *saturated, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	bool piped = !strcmp(path, "-");
	FILE *file = piped ? stdin : fopen(path, "rb");
	if (!file)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	int status = load(file, place, array, quantize, rounding, data, saturated, &why);
	if (!piped)
		fclose(file);
	return status ? about_file(path, &why, error) : 0;
}

int array_save(const char *path, const struct npumem_place *place, const struct array *array, bool dequantize,
	       const void *data, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	float *reals = NULL;
	size_t bytes = array->bytes;
	if (dequantize) {
		reals = __builtin_mul_overflow(array->n, sizeof(float), &bytes) ? NULL : malloc(bytes);
		if (!reals)
			return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for %zu numbers",
						array->n);
		quantize_back(data, array->n, place->dtype, place->frac_bits, reals);
	}
	bool piped = !strcmp(path, "-");
	FILE *file = piped ? stdout : fopen(path, "wb");
	int status;
	if (!file) {
		status = npumem_error_set(&why, NPUMEM_INVALID, "%s", strerror(errno));
	} else {
		status = npy_write(file, dequantize ? "<f4" : npy_descr(place->dtype), array->shape, array->n_dims,
				   reals ? (const void *)reals : data, bytes, &why);
		if (!piped && fclose(file) && !status)
			status = npumem_error_set(&why, NPUMEM_INTERNAL, "writing failed: %s", strerror(errno));
	}
	free(reals);
	return status ? about_file(path, &why, error) : 0;
}
