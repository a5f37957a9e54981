/* Tensors of a network: of "tensors", and of "alloc". Checks what is wrong on every device; the formulas check the
 * rest when a geometry is known. */
#include "client/ctl/core/network/reading/load.h"

#include <string.h>

#include <npumem/client.h>

#include "client/ctl/core/memory.h"

static const char tensor_keys[] = "shape dtype frac_bits layout mode stride rows cols w start_npu address reuse "
				  "dma_only pinned keep file quantize rounding perm fill expect comment";

int tensor_new(struct load *load, struct keys *keys, const char *name, int *index)
{
	struct network *network = load->network;
	const json_t *there = json_object_get(load->scope, name);
	if (there) {
		const struct network_tensor *other = &network->tensors[json_integer_value(there)];
		char where[NETWORK_TEXT_BYTES] = "among \"tensors\"";
		if (!other->is_declared)
			network_where(network, &network->operations[other->born], where);
		return npumem_error_set(load->error, NPUMEM_INVALID,
					"%s: there is a tensor \"%.63s\" already (%s)", keys->where, name, where);
	}
	*index = (int)network->n_tensors++;
	struct network_tensor *tensor = memory_grow(&network->tensors, (size_t)*index, sizeof(*tensor));
	json_object_set_new(load->scope, name, json_integer(*index));
	*tensor = (struct network_tensor){
		.name = name, .json = keys->object, .base = NETWORK_NONE, .born = NETWORK_NONE};
	npumem_spec_init(&tensor->spec);
	return 0;
}

static int parse_spec(struct keys *keys, struct npumem_spec *spec)
{
	if (!keys_name(keys, "dtype", "element type", npumem_dtype_parse, npumem_dtype_name, &spec->dtype) &&
	    !spec->dtype)
		keys_expected(keys, "dtype", "int8, uint8, int16, uint16, int32, uint32, fp32, fx8 or fx16");
	keys_name(keys, "layout", "layout", npumem_layout_parse, npumem_layout_name, &spec->layout);
	keys_name(keys, "mode", "storage mode", npumem_mode_parse, npumem_mode_name, &spec->mode);
	keys_dims(keys, "shape", &spec->shape);
	keys_dims(keys, "stride", &spec->stride);
	keys_count(keys, "frac_bits", &spec->frac_bits);
	keys_count(keys, "rows", &spec->rows);
	keys_count(keys, "cols", &spec->cols);
	keys_count(keys, "w", &spec->w);
	keys_count(keys, "start_npu", &spec->start_npu);
	return keys_count(keys, "address", &spec->address);
}

static int check_spec(struct keys *keys, const struct npumem_spec *spec)
{
	const json_t *object = keys->object;
	bool has_rows = json_object_get(object, "rows") || json_object_get(object, "cols");
	if (spec->layout == NPUMEM_MATRIX && json_object_get(object, "shape"))
		return npumem_error_set(keys->error, NPUMEM_INVALID,
					"%s: a matrix takes \"rows\" and \"cols\", not \"shape\"", keys->where);
	if (spec->layout != NPUMEM_MATRIX && (has_rows || json_object_get(object, "w")))
		return npumem_error_set(keys->error, NPUMEM_INVALID,
					"%s: \"rows\", \"cols\" and \"w\" are for \"layout\": \"matrix\"",
					keys->where);
	if (spec->layout != NPUMEM_MATRIX && !json_object_get(object, "shape"))
		return keys_expected(keys, "shape", "[N,C,H,W]");
	if (spec->layout == NPUMEM_MATRIX && (!spec->rows || !spec->cols))
		return keys_expected(keys, spec->rows ? "cols" : "rows", "an integer from 1 on");
	if (spec->layout == NPUMEM_STRIDED && !json_object_get(object, "stride") &&
	    (spec->shape.n > 1 || spec->shape.h > 1 || spec->shape.w > 1))
		return keys_expected(keys, "stride", "[N,C,H,W]");
	if (npumem_dtype_is_fixed(spec->dtype) && spec->frac_bits == NPUMEM_ANY)
		return keys_expected(keys, "frac_bits", "an integer from 0 to 127");
	return 0;
}

int tensor_value(struct keys *keys, const char *key, struct network_operation *operation)
{
	const json_t *value = json_object_get(keys->object, key);
	if (!json_is_number(value))
		return keys_expected(keys, key, "a number");
	operation->is_real = json_is_real(value);
	operation->integer = json_integer_value(value);
	operation->real = json_number_value(value);
	return 0;
}

static int read_perm(struct keys *keys, struct stream_perm *perm)
{
	const json_t *json = json_object_get(keys->object, "perm");
	unsigned seen = 0, n = (unsigned)json_array_size(json);
	if (!json)
		return 0;
	for (unsigned i = 0; i < n && n <= STREAM_PERM_MAX; i++) {
		const json_t *number = json_array_get(json, i);
		json_int_t dim = json_integer_value(number);
		if (!json_is_integer(number) || dim < 0 || dim >= n)
			break;
		perm->dim[i] = (unsigned)dim;
		seen |= 1U << dim;
	}
	perm->n = n;
	if (n && n <= STREAM_PERM_MAX && seen == (1U << n) - 1)
		return 0;
	return keys_expected(keys, "perm", "a permutation like [1,0,2,3]");
}

int tensor_conversion(struct keys *keys, const char *key, struct network_operation *operation)
{
	keys_bool(keys, key, &operation->converts);
	read_perm(keys, &operation->perm);
	int status = keys_name(keys, "rounding", "rounding", npumem_rounding_parse, npumem_rounding_name,
			       &operation->rounding);
	if (!status && operation->rounding && !operation->converts)
		return npumem_error_set(keys->error, NPUMEM_INVALID, "%s: \"rounding\" is for \"%s\": true",
					keys->where, key);
	return status;
}

/* What an allocation is first given. */
static int check_content(struct keys *keys, struct network_tensor *tensor)
{
	struct network_operation operation = {.converts = false};
	bool has_file = json_object_get(keys->object, "file"), has_fill = json_object_get(keys->object, "fill");
	const char *file;
	int status = has_file ? keys_string(keys, "file", &file) : 0;
	if (!status)
		status = keys_string(keys, "expect", &tensor->expect);
	if (!status && has_fill)
		status = tensor_value(keys, "fill", &operation);
	if (!status && has_file && has_fill)
		return npumem_error_set(keys->error, NPUMEM_INVALID,
					"%s: \"file\" and \"fill\" exclude each other", keys->where);
	if (!status)
		status = tensor_conversion(keys, "quantize", &operation);
	if (!status && operation.converts && !npumem_dtype_is_fixed(tensor->spec.dtype))
		return npumem_error_set(keys->error, NPUMEM_INVALID, "%s: \"quantize\" is for fx8 and fx16",
					keys->where);
	return status;
}

int tensor_parse(struct keys *keys, const char *own, struct network_tensor *tensor)
{
	keys_check(keys, tensor_keys, own);
	int status = parse_spec(keys, &tensor->spec);
	if (!status)
		status = check_spec(keys, &tensor->spec);
	if (status)
		return status;
	keys_name(keys, "reuse", "reuse policy", npumem_reuse_parse, npumem_reuse_name, &tensor->reuse);
	keys_bool(keys, "dma_only", &tensor->dma_only);
	keys_bool(keys, "pinned", &tensor->pinned);
	status = keys_bool(keys, "keep", &tensor->keep);
	if (!status && tensor->keep && strlen(tensor->name) > NPUMEM_NAME_BYTES_MAX)
		return npumem_error_set(keys->error, NPUMEM_INVALID,
					"%s: a name that is kept has at most %d bytes", keys->where,
					NPUMEM_NAME_BYTES_MAX);
	return status ? status : check_content(keys, tensor);
}

void tensor_born(struct load *load, int index, const struct network_operation *at)
{
	struct network *network = load->network;
	struct network_tensor *tensor = &network->tensors[index];
	struct keys keys = {tensor->json, "", load->error, 0};
	struct network_operation operation = {.kind = NETWORK_ALLOC,
					      .place = at->place,
					      .line = at->line,
					      .is_implied = tensor->is_declared,
					      .name = at->name,
					      .tensor = index};
	tensor->born = (int)network->n_operations;
	load_emit(load, &operation);
	operation.is_implied = true;
	/* Read once before, so that nothing is wrong with it here. */
	keys_string(&keys, "file", &operation.file);
	tensor_conversion(&keys, "quantize", &operation);
	operation.kind = NETWORK_WRITE;
	if (operation.file)
		load_emit(load, &operation);
	if (!json_object_get(tensor->json, "fill"))
		return;
	operation.kind = NETWORK_FILL;
	tensor_value(&keys, "fill", &operation);
	load_emit(load, &operation);
}
