/* Cases from runs. Each tensor gets the dims that the vectors of its kernel have, where its shape allows; else it
 * is N,C,H,W as it lies. Parameters get the vectors' names and forms; a default that was not given stays unsaid.
 */
#include "client/ctl/core/vectors/vectors.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

enum { RECORD_TEXT_BYTES = 128 };

/* The dims by role; the first row that fits counts. `kernel` NULL: any; a role's `*` stands for a number. */
static const struct {
	const char *kernel, *role, *dims;
} golden_rows[] = {
	{"fully_connected", "in", "N"},
	{"fully_connected", "weights", "M,N"},
	{"fully_connected", "bias", "M"},
	{"fully_connected", "out", "M"},
	{"rnn_dense", "in*", "N"},
	{"rnn_dense", "weights*", "M,N"},
	{"rnn_dense", "bias", "M"},
	{"rnn_dense", "out", "M"},
	{"lstm_cell", "in", "T,N"},
	{"lstm_cell", "weights", "G,M,N+M"},
	{"lstm_cell", "bias", "G,M"},
	{"lstm_cell", "out", "T,M"},
	{"gru_cell", "in", "T,N"},
	{"gru_cell", "bias", "G,M"},
	{"gru_cell", "out", "T,M"},
	{"basic_rnn_cell", "in", "T,N"},
	{"basic_rnn_cell", "bias", "M"},
	{"basic_rnn_cell", "bias", "G,M"},
	{"basic_rnn_cell", "weights", "M,N+M"},
	{"basic_rnn_cell", "weights", "G,M,N+M"},
	{"basic_rnn_cell", "out", "T,M"},
	{"leaky_relu", "slope", "S"},
	{NULL, "weights_in", "G,M,N"},
	{NULL, "weights_out", "G,M,K"},
	{NULL, "prev_out", "M"},
	{NULL, "cell_in", "M"},
	{NULL, "cell_out", "M"},
	{NULL, "weights", "O,I,H,W"},
	{NULL, "bias", "O"},
};

/* What a tensor is to its kernel; a role that is not here is an input, or the kernel's output. */
static const struct {
	const char *kernel, *role, *kind;
} kind_rows[] = {
	{NULL, "weights", "weights"},	  {NULL, "weights*", "weights"}, {NULL, "weights_in", "weights"},
	{NULL, "weights_out", "weights"}, {NULL, "bias", "bias"},	 {NULL, "cell_in", "state"},
	{"prelu", "slope", "weights"},	  {NULL, "slope", "scalar"},
};

/* By kernel, what its tables are of; the vectors name each with its library. */
static const struct {
	const char *kernel, *table, *second;
} lut_rows[] = {
	{"softmax", "expneg", NULL},
	{"sigmoid", "sigmoid", NULL},
	{"tanh", "tanh", NULL},
	{NULL, "sigmoid", "tanh"}, /* cells */
};

static bool row_is(const char *kernel, const char *role, const struct golden *golden, const char *name)
{
	return (!kernel || !strcmp(kernel, golden->row->name)) && lists_has(role, name);
}

static const struct npumem_param *param_of(const struct golden *golden, int number)
{
	for (unsigned i = 0; i < golden->n_params; i++)
		if (golden->params[i].number == number)
			return &golden->params[i];
	return NULL;
}

static const char *kind_of(const struct golden *golden, const char *role)
{
	if (roles_is_output(golden->row, role))
		return "output";
	for (size_t i = 0; i < sizeof(kind_rows) / sizeof(kind_rows[0]); i++)
		if (row_is(kind_rows[i].kernel, kind_rows[i].role, golden, role))
			return kind_rows[i].kind;
	return "input";
}

/* The tensor of a kind, or NULL. */
static const struct golden_tensor *tensor_of(const struct golden *golden, const char *kind)
{
	for (unsigned i = 0; i < golden->n_tensors; i++)
		if (!strcmp(kind_of(golden, golden->tensors[i].role), kind))
			return &golden->tensors[i];
	return NULL;
}

/* As the vectors spell it. */
static const char *dtype_name(int dtype)
{
	return dtype == NPUMEM_INT32 ? "i32" : npumem_dtype_name(dtype);
}

static bool is_packed(const struct golden *golden)
{
	return !strcmp(golden->row->types, "packed");
}

static const char *rounding_of(const struct golden *golden)
{
	const struct npumem_param *given = param_of(golden, NPUMEM_PARAM_ROUNDING);
	if (given)
		return npumem_rounding_name((int)given->values[0]);
	/* Packed operations know no other. */
	return npumem_rounding_name(is_packed(golden) ? NPUMEM_UP : golden->rounding);
}

int golden_check(const struct golden_tensor *tensor, struct npumem_error *error)
{
	const struct npumem_dims *shape = &tensor->shape;
	int64_t low, high;
	size_t n = (size_t)shape->n;
	if (!npumem_dtype_range(tensor->dtype, &low, &high))
		return npumem_error_set(error, NPUMEM_INVALID, "%s is %s, and golden vectors hold integers only",
					tensor->role, npumem_dtype_name(tensor->dtype));
	if (__builtin_mul_overflow(n, (size_t)shape->c, &n) || __builtin_mul_overflow(n, (size_t)shape->h, &n) ||
	    __builtin_mul_overflow(n, (size_t)shape->w, &n) || n > VECTORS_ELEMENTS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s has more than the %d elements that a golden vector may have",
					tensor->role, VECTORS_ELEMENTS_MAX);
	return 0;
}

/* ---- tensors ---- */

/* perm with all four dims. False where the call has none. */
static bool perm_of(const struct golden *golden, int64_t perm[4])
{
	const struct npumem_param *given = param_of(golden, NPUMEM_PARAM_PERM);
	if (!given)
		return false;
	unsigned kept = 4 - given->n_values;
	for (unsigned i = 0; i < 4; i++)
		perm[i] = i < kept ? i : given->values[i - kept] + kept;
	return true;
}

/* A permutation of C,H,W of one n: the vectors have three dims for it. */
static bool perm_is_of_three(const struct golden *golden)
{
	const struct golden_tensor *in = tensor_of(golden, "input");
	int64_t perm[4];
	return perm_of(golden, perm) && perm[0] == 0 && in && in->shape.n == 1;
}

/* Dims that depend on a parameter; NULL where the tables have them. */
static const char *dims_by_param(const struct golden *golden, const struct golden_tensor *tensor)
{
	static const char *const best[] = {"one,K", "N,K", "C,K", "H,K", "W,K"}; /* by axis */
	const struct npumem_param *axis = param_of(golden, NPUMEM_PARAM_AXIS);
	bool output = roles_is_output(golden->row, tensor->role);
	if (!strcmp(golden->row->name, "argmax") && output)
		return best[axis ? axis->values[0] - 1 : 0];
	if (strcmp(golden->row->name, "permute"))
		return NULL;
	if (perm_is_of_three(golden))
		return output ? "e0,e1,e2" : "d0,d1,d2";
	return output ? "e0,e1,e2,e3" : "d0,d1,d2,d3";
}

static void choose_dims(const struct golden *golden, const struct golden_tensor *tensor, struct vectors_tensor *to,
			struct mapping *mapping)
{
	const char *kernel = golden->row->name, *dims = dims_by_param(golden, tensor);
	if (dims && mapping_dims(kernel, dims, &tensor->shape, to, mapping))
		return;
	for (size_t i = 0; i < sizeof(golden_rows) / sizeof(golden_rows[0]); i++)
		if (row_is(golden_rows[i].kernel, golden_rows[i].role, golden, tensor->role) &&
		    mapping_dims(kernel, golden_rows[i].dims, &tensor->shape, to, mapping))
			return;
	mapping_dims(kernel, "N,C,H,W", &tensor->shape, to, mapping);
}

static json_t *names_json(const char *names)
{
	json_t *array = json_array();
	for (size_t length; *names; names += length + (names[length] == ',')) {
		length = strcspn(names, ",");
		json_array_append_new(array, json_stringn(names, length));
	}
	return array;
}

static json_t *numbers_json(const int64_t *values, size_t n)
{
	json_t *array = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, json_integer(values[i]));
	return array;
}

static json_t *tensor_json(const struct golden *golden, const struct golden_tensor *tensor)
{
	struct vectors_tensor vector = {.dtype = tensor->dtype};
	struct mapping mapping;
	choose_dims(golden, tensor, &vector, &mapping);
	vector.data = memory_new(vector.n, sizeof(*vector.data));
	mapping_unpack(&vector, &mapping, tensor->data);
	/* `*`: left out where it is NULL. A storage mode is part of packed operations only. */
	return json_pack("{s:s, s:s, s:s*, s:o, s:o, s:o*, s:o}", "role", kind_of(golden, tensor->role), "dtype",
			 dtype_name(tensor->dtype), "mode",
			 is_packed(golden) && tensor->mode != NPUMEM_MODE_PLAIN ? npumem_mode_name(tensor->mode)
										: NULL,
			 "dims", names_json(vector.dims), "shape", numbers_json(vector.shape, vector.n_dims),
			 "frac_bits", tensor->frac_bits == NPUMEM_ANY ? NULL : json_integer(tensor->frac_bits),
			 "data", numbers_json(vector.data, vector.n));
}

/* ---- parameters ---- */

/* Choice `value`, counted from 1. */
static json_t *choice_json(const char *choices, int64_t value, bool upper)
{
	struct lists_word word;
	do
		lists_next(&choices, &word);
	while (value-- > 1);
	for (char *c = word.text; upper && *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return json_string(word.text);
}

static json_t *lut_json(const struct golden *golden, bool *many)
{
	const struct npumem_param *lut = param_of(golden, NPUMEM_PARAM_LUT);
	const struct npumem_param_row *row = npumem_param_by_number(NPUMEM_PARAM_LUT);
	char first[64], second[64];
	size_t i = 0;
	while (lut_rows[i].kernel && strcmp(lut_rows[i].kernel, golden->row->name))
		i++;
	const char *name = json_string_value(choice_json(row->choices, lut->values[0], false));
	snprintf(first, sizeof(first), "%s_%s", lut_rows[i].table, name);
	*many = lut_rows[i].second;
	if (*many)
		snprintf(second, sizeof(second), "%s_%s", lut_rows[i].second, name);
	return *many ? json_pack("[s, s]", first, second) : json_string(first);
}

static json_t *perm_json(const struct golden *golden)
{
	int64_t perm[4];
	if (!perm_of(golden, perm))
		return NULL;
	if (!perm_is_of_three(golden))
		return numbers_json(perm, 4);
	for (unsigned i = 1; i < 4; i++)
		perm[i]--;
	return numbers_json(perm + 1, 3);
}

static json_t *plain_json(const struct npumem_param *param, const struct npumem_param_row *row)
{
	bool upper = param->number == NPUMEM_PARAM_AXIS || param->number == NPUMEM_PARAM_AXES;
	if (!*row->choices)
		return row->most == 1 ? json_integer(param->values[0])
				      : numbers_json(param->values, param->n_values);
	if (row->most == 1)
		return choice_json(row->choices, param->values[0], upper);
	json_t *array = json_array();
	for (unsigned i = 0; i < param->n_values; i++)
		json_array_append_new(array, choice_json(row->choices, param->values[i], upper));
	return array;
}

/* Its value as the vectors have it; *name is what they call it. */
static json_t *param_json(const struct golden *golden, const struct npumem_param *param, const char **name)
{
	const struct npumem_param_row *row = npumem_param_by_number(param->number);
	const int64_t *v = param->values;
	bool many;
	json_t *json;
	*name = row->name;
	switch (param->number) {
	case NPUMEM_PARAM_PADDING:
		return json_pack("{s:I, s:I, s:I, s:I}", "top", (json_int_t)v[0], "bottom", (json_int_t)v[1],
				 "left", (json_int_t)v[2], "right", (json_int_t)v[3]);
	case NPUMEM_PARAM_PERM:
		*name = "perm_dim";
		return perm_json(golden);
	case NPUMEM_PARAM_LUT:
		json = lut_json(golden, &many);
		*name = many ? "luts" : "lut";
		return json;
	case NPUMEM_PARAM_AXIS:
		return v[0] == 1 ? json_null() : plain_json(param, row);
	default:
		return plain_json(param, row);
	}
}

/* Said elsewhere in the case: by its rounding, or by the role of a tensor. */
static bool param_is_said(const struct golden *golden, const struct npumem_param *param)
{
	const char *name = npumem_param_by_number(param->number)->name;
	for (unsigned i = 0; i < golden->n_tensors; i++)
		if (mapping_implies(golden->row->name, golden->tensors[i].role, name))
			return true;
	return param->number == NPUMEM_PARAM_ROUNDING;
}

/* ---- the case ---- */

static void case_dtype(const struct golden *golden, char *text, size_t bytes)
{
	const struct golden_tensor *in = tensor_of(golden, "input"), *weights = tensor_of(golden, "weights"),
				   *out = tensor_of(golden, "output");
	const char *name = dtype_name(in ? in->dtype : golden->tensors[0].dtype);
	if (out && !strcmp(golden->row->name, "convert_tensor"))
		snprintf(text, bytes, "%s_to_%s", name, dtype_name(out->dtype));
	else if (in && weights && weights->dtype != in->dtype)
		snprintf(text, bytes, "%s_%s_%s", name, dtype_name(weights->dtype), dtype_name(weights->dtype));
	else
		snprintf(text, bytes, "%s", name);
}

json_t *golden_case(const struct golden *golden, unsigned number)
{
	json_t *params = json_object(), *tensors = json_object();
	char dtype[RECORD_TEXT_BYTES / 2], text[2 * RECORD_TEXT_BYTES];
	const char *name;
	for (unsigned i = 0; i < golden->n_params; i++)
		if (!param_is_said(golden, &golden->params[i])) {
			json_t *value = param_json(golden, &golden->params[i], &name);
			json_object_set_new(params, name, value);
		}
	for (unsigned i = 0; i < golden->n_tensors; i++)
		json_object_set_new(tensors, golden->tensors[i].role, tensor_json(golden, &golden->tensors[i]));
	case_dtype(golden, dtype, sizeof(dtype));
	snprintf(text, sizeof(text), "%s/%s/recorded%u@%s", golden->row->name, dtype, number, rounding_of(golden));
	return json_pack("{s:s, s:s, s:s, s:s, s:[s], s:o, s:o}", "name", text, "kernel", golden->row->name,
			 "dtype", dtype, "rounding", rounding_of(golden), "tags", "recorded", "params", params,
			 "tensors", tensors);
}
