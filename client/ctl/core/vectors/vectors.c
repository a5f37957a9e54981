/* Golden vectors from JSON. Takes nothing on trust: a case whose data do not fill its shape, or do not fit its
 * type, is refused by name. */
#include "client/ctl/core/vectors/vectors.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/memory.h"

int vectors_load(const char *path, json_t **root, const json_t **cases, struct npumem_error *error)
{
	json_error_t why;
	*root = json_load_file(path, 0, &why);
	*cases = NULL;
	if (!*root)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: line %d: %.200s", path, why.line,
					why.text);
	const json_t *array = json_object_get(*root, "cases");
	if (json_is_array(array) && json_is_string(json_object_get(*root, "family")))
		*cases = array;
	return 0;
}

static int dtype_of(const char *name)
{
	if (!strcmp(name, "i32"))
		return NPUMEM_INT32;
	return npumem_dtype_parse(name);
}

static int read_shape(const json_t *json, struct vectors_tensor *tensor, struct npumem_error *error)
{
	const json_t *shape = json_object_get(json, "shape"), *dims = json_object_get(json, "dims");
	size_t n = json_array_size(shape), at = 0;
	if (n < 1 || n > VECTORS_DIMS_MAX || json_array_size(dims) != n)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: shape and dims are not 1 to %d each",
					tensor->role, VECTORS_DIMS_MAX);
	tensor->n = 1;
	tensor->n_dims = (unsigned)n;
	for (size_t i = 0; i < n; i++) {
		const char *name = json_string_value(json_array_get(dims, i));
		tensor->shape[i] = json_integer_value(json_array_get(shape, i));
		if (!name || tensor->shape[i] < 1 ||
		    __builtin_mul_overflow(tensor->n, (size_t)tensor->shape[i], &tensor->n) ||
		    tensor->n > VECTORS_ELEMENTS_MAX)
			return npumem_error_set(error, NPUMEM_INVALID, "%s: dimension %zu is not right",
						tensor->role, i);
		int length = snprintf(tensor->dims + at, sizeof(tensor->dims) - at, i ? ",%s" : "%s", name);
		if (length < 0 || (at += (size_t)length) >= sizeof(tensor->dims))
			return npumem_error_set(error, NPUMEM_INVALID, "%s: the names of its dims are too long",
						tensor->role);
	}
	return 0;
}

static int read_data(const json_t *json, struct vectors_tensor *tensor, struct npumem_error *error)
{
	const json_t *data = json_object_get(json, "data");
	int64_t low, high;
	if (json_array_size(data) != tensor->n)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: %zu data for a shape of %zu", tensor->role,
					json_array_size(data), tensor->n);
	if (!npumem_dtype_range(tensor->dtype, &low, &high))
		return npumem_error_set(error, NPUMEM_INVALID, "%s: data of type %s cannot be read", tensor->role,
					npumem_dtype_name(tensor->dtype));
	tensor->data = memory_new(tensor->n, sizeof(*tensor->data));
	for (size_t i = 0; i < tensor->n; i++) {
		const json_t *value = json_array_get(data, i);
		tensor->data[i] = json_integer_value(value);
		if (!json_is_integer(value) || tensor->data[i] < low || tensor->data[i] > high)
			return npumem_error_set(error, NPUMEM_INVALID, "%s: datum %zu is no %s", tensor->role, i,
						npumem_dtype_name(tensor->dtype));
	}
	return 0;
}

static int read_tensor(const char *role, const json_t *json, struct vectors_tensor *tensor,
		       struct npumem_error *error)
{
	const char *dtype = json_string_value(json_object_get(json, "dtype"));
	const char *kind = json_string_value(json_object_get(json, "role"));
	const char *mode = json_string_value(json_object_get(json, "mode"));
	const json_t *frac_bits = json_object_get(json, "frac_bits");
	*tensor = (struct vectors_tensor){.frac_bits = NPUMEM_ANY};
	if (strlen(role) >= sizeof(tensor->role))
		return npumem_error_set(error, NPUMEM_INVALID, "the role \"%.60s\" is too long", role);
	snprintf(tensor->role, sizeof(tensor->role), "%s", role);
	tensor->dtype = dtype ? dtype_of(dtype) : 0;
	if (!tensor->dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: there is no element type \"%.40s\"", role,
					dtype ? dtype : "");
	if (!kind)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: its role is not said", role);
	tensor->output = !strcmp(kind, "output");
	tensor->mode = mode ? npumem_mode_parse(mode) : 0;
	if (mode && !tensor->mode)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: there is no storage mode \"%.40s\"", role,
					mode);
	if (json_is_integer(frac_bits))
		tensor->frac_bits = json_integer_value(frac_bits);
	int status = read_shape(json, tensor, error);
	return status ? status : read_data(json, tensor, error);
}

int vectors_case(const json_t *json, struct vectors_case *one, struct npumem_error *error)
{
	const json_t *tensors = json_object_get(json, "tensors");
	*one = (struct vectors_case){
		.name = json_string_value(json_object_get(json, "name")),
		.kernel = json_string_value(json_object_get(json, "kernel")),
		.rounding = json_string_value(json_object_get(json, "rounding")),
		.params = json_object_get(json, "params"),
	};
	if (!one->name || !one->kernel || !json_is_object(tensors))
		return npumem_error_set(error, NPUMEM_INVALID, "a case without name, kernel or tensors");
	if (json_object_size(tensors) > NPUMEM_OPERANDS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "%zu tensors are more than the %d of a call",
					json_object_size(tensors), NPUMEM_OPERANDS_MAX);
	for (void *at = json_object_iter((json_t *)(uintptr_t)tensors); at;
	     at = json_object_iter_next((json_t *)(uintptr_t)tensors, at)) {
		int status = read_tensor(json_object_iter_key(at), json_object_iter_value(at),
					 &one->tensors[one->n_tensors++], error);
		if (status) {
			vectors_case_deinit(one);
			return status;
		}
	}
	return 0;
}

void vectors_case_deinit(struct vectors_case *one)
{
	for (unsigned i = 0; i < one->n_tensors; i++)
		memory_free(one->tensors[i].data);
	one->n_tensors = 0;
}
