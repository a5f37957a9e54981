/* How a golden vector becomes a run. The tables come first; KERNELS.md and the vectors' FORMAT.md are their
 * source. */
#include "client/ctl/core/vectors/vectors.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/kernels/kernels.h"

/* By the names of a vector's dims: which of them is N, C, H and W; `-`: extent 1. `kernel` NULL: any. */
static const struct {
	const char *kernel, *dims, *nchw;
} dims_rows[] = {
	{NULL, "N,C,H,W", "0123"},   {NULL, "O,I,H,W", "1023"}, /* weights lie [I,O,kh,kw] */
	{NULL, "N", "-0--"},					/* feature vectors: [1,N,1,1] */
	{NULL, "M", "-0--"},	     {NULL, "O", "-0--"},	    {NULL, "S", "-0--"},
	{NULL, "M,N", "10--"},				    /* fully connected weights lie [K,M,1,1] */
	{NULL, "T,N", "01--"},				    /* sequences: a step is an n */
	{NULL, "T,M", "01--"},	     {NULL, "G,M", "01--"}, /* gates */
	{NULL, "G,M,N", "01-2"},     {NULL, "G,M,K", "01-2"},	    {NULL, "G,M,N+M", "01-2"},
	{NULL, "M,N+M", "-0-1"},     {NULL, "d0,d1,d2", "-012"}, /* three-dimensional permutations are C,H,W */
	{NULL, "e0,e1,e2", "-012"},  {NULL, "d0,d1,d2,d3", "0123"}, {NULL, "e0,e1,e2,e3", "0123"},
	{"argmax", "one,K", "-1--"}, /* of the whole tensor */
	{"argmax", "N,K", "-0-1"},   {"argmax", "C,K", "-0-1"},	    {"argmax", "H,K", "-0-1"},
	{"argmax", "W,K", "-0-1"},
};

enum param_rule {
	PARAM_IGNORED, /* says what the tensors say, or is a remark */
	PARAM_PLAIN,   /* numbers, or a choice in lower case */
	PARAM_PADDING, /* {top, bottom, left, right} */
	PARAM_PERM,    /* dims of the vector */
	PARAM_LUT,     /* "sigmoid_mli1_1", or a list of such: the library whose tables they are */
	PARAM_GROUPS,  /* where the kernel has none, its weights say it */
};

/* By a vector's names of parameters; any other is PARAM_PLAIN under its own name. */
static const struct {
	const char *name, *here;
	enum param_rule rule;
} param_rows[] = {
	{"padding", "padding", PARAM_PADDING},
	{"perm_dim", "perm", PARAM_PERM},
	{"lut", "lut", PARAM_LUT},
	{"luts", "lut", PARAM_LUT},
	{"groups", "groups", PARAM_GROUPS},
	{"scalar_operand", "", PARAM_IGNORED},
	{"op", "", PARAM_IGNORED},
	{"inputs_num", "", PARAM_IGNORED},
	{"gate_order", "", PARAM_IGNORED},
	{"index_encoding", "", PARAM_IGNORED},
};

/* Roles that tell of the 1.1 rules: one weights tensor where the cell otherwise has two. */
static const struct {
	const char *kernel, *role, *param, *value;
} role_rows[] = {
	{"lstm_cell", "weights", "rules", "mli1_1"},
};

enum { PARAM_TEXT_BYTES = 96 };

/* ---- tensors ---- */

/* `kernel` has this row for tensors of these dims. */
static bool dims_match(size_t row, const char *kernel, const char *dims)
{
	return !strcmp(dims_rows[row].dims, dims) &&
	       (!dims_rows[row].kernel || !strcmp(dims_rows[row].kernel, kernel));
}

int mapping_tensor(const struct vectors_case *one, const struct vectors_tensor *tensor, struct mapping *mapping,
		   struct npumem_error *error)
{
	for (size_t i = 0; i < sizeof(dims_rows) / sizeof(dims_rows[0]); i++) {
		if (!dims_match(i, one->kernel, tensor->dims))
			continue;
		int64_t extent[4];
		for (unsigned d = 0; d < 4; d++) {
			char which = dims_rows[i].nchw[d];
			mapping->from[d] = which == '-' ? -1 : which - '0';
			extent[d] = which == '-' ? 1 : tensor->shape[mapping->from[d]];
		}
		mapping->shape = (struct npumem_dims){extent[0], extent[1], extent[2], extent[3]};
		if ((size_t)(extent[0] * extent[1] * extent[2] * extent[3]) == tensor->n)
			return 0;
	}
	return npumem_error_set(error, NPUMEM_INVALID, "%s has dims %s, which have no place in N,C,H,W",
				tensor->role, tensor->dims);
}

bool mapping_dims(const char *kernel, const char *dims, const struct npumem_dims *shape,
		  struct vectors_tensor *tensor, struct mapping *mapping)
{
	const int64_t extent[4] = {shape->n, shape->c, shape->h, shape->w};
	for (size_t i = 0; i < sizeof(dims_rows) / sizeof(dims_rows[0]); i++) {
		bool fits = dims_match(i, kernel, dims);
		*mapping = (struct mapping){.shape = *shape};
		tensor->n_dims = 1;
		for (const char *c = dims; *c; c++)
			tensor->n_dims += *c == ',';
		for (unsigned d = 0; d < VECTORS_DIMS_MAX; d++)
			tensor->shape[d] = 1;
		for (unsigned d = 0; d < 4; d++) {
			char which = dims_rows[i].nchw[d];
			mapping->from[d] = which == '-' ? -1 : which - '0';
			if (which != '-')
				tensor->shape[mapping->from[d]] = extent[d];
			else
				fits = fits && extent[d] == 1;
		}
		if (!fits)
			continue;
		snprintf(tensor->dims, sizeof(tensor->dims), "%s", dims);
		tensor->n = (size_t)(shape->n * shape->c * shape->h * shape->w);
		return true;
	}
	return false;
}

/* The vector's index of element i in N,C,H,W order. */
static size_t vector_index(const struct vectors_tensor *tensor, const struct mapping *mapping, size_t i)
{
	const size_t extent[4] = {(size_t)mapping->shape.n, (size_t)mapping->shape.c, (size_t)mapping->shape.h,
				  (size_t)mapping->shape.w};
	size_t index[VECTORS_DIMS_MAX] = {0}, at = 0;
	for (unsigned d = 4; d-- > 0; i /= extent[d])
		if (mapping->from[d] >= 0)
			index[mapping->from[d]] = i % extent[d];
	for (unsigned d = 0; d < tensor->n_dims; d++)
		at = at * (size_t)tensor->shape[d] + index[d];
	return at;
}

int64_t mapping_expected(const struct vectors_tensor *tensor, const struct mapping *mapping, size_t i)
{
	return tensor->data[vector_index(tensor, mapping, i)];
}

void mapping_pack(const struct vectors_tensor *tensor, const struct mapping *mapping, void *to)
{
	unsigned bytes = npumem_dtype_bytes(tensor->dtype);
	for (size_t i = 0; i < tensor->n; i++) {
		/* Little-endian: the low bytes come first, and the value fits them. */
		int64_t value = mapping_expected(tensor, mapping, i);
		memcpy((char *)to + i * bytes, &value, bytes);
	}
}

void mapping_unpack(const struct vectors_tensor *tensor, const struct mapping *mapping, const void *from)
{
	for (size_t i = 0; i < tensor->n; i++)
		tensor->data[vector_index(tensor, mapping, i)] = mapping_value(tensor->dtype, from, i);
}

int64_t mapping_value(int dtype, const void *data, size_t i)
{
	switch (dtype) {
	case NPUMEM_INT8:
	case NPUMEM_FX8:
		return ((const int8_t *)data)[i];
	case NPUMEM_UINT8:
		return ((const uint8_t *)data)[i];
	case NPUMEM_INT16:
	case NPUMEM_FX16:
		return ((const int16_t *)data)[i];
	case NPUMEM_UINT16:
		return ((const uint16_t *)data)[i];
	case NPUMEM_INT32:
		return ((const int32_t *)data)[i];
	default:
		return ((const uint32_t *)data)[i];
	}
}

/* ---- parameters ---- */

/* Appends a number or a lower-case word, after a comma. */
static bool text_add(char *text, const json_t *value)
{
	size_t at = strlen(text), room = PARAM_TEXT_BYTES - at;
	int n;
	if (json_is_integer(value))
		n = snprintf(text + at, room, "%s%" JSON_INTEGER_FORMAT, at ? "," : "", json_integer_value(value));
	else if (json_is_string(value))
		n = snprintf(text + at, room, "%s%s", at ? "," : "", json_string_value(value));
	else
		return false;
	for (char *c = text + at; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	return n > 0 && (size_t)n < room;
}

static bool text_plain(char *text, const json_t *value)
{
	if (!json_is_array(value))
		return text_add(text, value);
	for (size_t i = 0; i < json_array_size(value); i++)
		if (!text_add(text, json_array_get(value, i)))
			return false;
	return json_array_size(value) > 0;
}

static bool text_padding(char *text, const json_t *value)
{
	static const char *const sides[] = {"top", "bottom", "left", "right"};
	for (unsigned i = 0; i < 4; i++)
		if (!text_add(text, json_object_get(value, sides[i])))
			return false;
	return true;
}

/* Dims of a three-dimensional vector are C,H,W: one further on. */
static bool text_perm(char *text, const json_t *value)
{
	size_t n = json_array_size(value), shift = 4 - n, at = 0;
	if (n != 3 && n != 4)
		return false;
	if (shift)
		at = (size_t)snprintf(text, PARAM_TEXT_BYTES, "0");
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, PARAM_TEXT_BYTES - at, "%s%lld", at ? "," : "",
				       (long long)(json_integer_value(json_array_get(value, i)) % 16) +
					       (long long)shift);
	return true;
}

static bool text_lut(char *text, const json_t *value)
{
	const char *name = json_string_value(json_is_array(value) ? json_array_get(value, 0) : value);
	const char *library = name ? strstr(name, "mli") : NULL;
	if (!library || strlen(library) >= PARAM_TEXT_BYTES)
		return false;
	snprintf(text, PARAM_TEXT_BYTES, "%s", library);
	return true;
}

static bool param_text(enum param_rule rule, const json_t *value, char *text)
{
	text[0] = 0;
	switch (rule) {
	case PARAM_PADDING:
		return text_padding(text, value);
	case PARAM_PERM:
		return text_perm(text, value);
	case PARAM_LUT:
		return text_lut(text, value);
	default:
		return text_plain(text, value);
	}
}

static int param_add(const char *name, const char *text, struct npumem_param *params, unsigned *n_params,
		     struct npumem_error *error)
{
	if (*n_params == NPUMEM_PARAMS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "more than %d parameters", NPUMEM_PARAMS_MAX);
	int status = npumem_param_parse(name, text, &params[*n_params], error);
	if (!status)
		++*n_params;
	return status;
}

static int param_map(const char *name, const json_t *value, const struct npumem_kernel_row *row,
		     struct npumem_param *params, unsigned *n_params, struct npumem_error *error)
{
	const char *here = name;
	enum param_rule rule = PARAM_PLAIN;
	char text[PARAM_TEXT_BYTES];
	for (size_t i = 0; i < sizeof(param_rows) / sizeof(param_rows[0]); i++)
		if (!strcmp(param_rows[i].name, name)) {
			here = param_rows[i].here;
			rule = param_rows[i].rule;
		}
	/* null asks for the default. */
	if (rule == PARAM_IGNORED || json_is_null(value))
		return 0;
	if (rule == PARAM_GROUPS && !roles_has_param(row, here))
		return 0;
	/* A kernel without dilation has 1,1. */
	if (!strcmp(here, "dilation") && !roles_has_param(row, here) &&
	    json_integer_value(json_array_get(value, 0)) == 1 && json_integer_value(json_array_get(value, 1)) == 1)
		return 0;
	/* A cell's tables are chosen once; kernels without tables to choose from have only one set. */
	if (rule == PARAM_LUT && !roles_has_param(row, here))
		return 0;
	if (!roles_has_param(row, here) || !param_text(rule, value, text))
		return npumem_error_set(error, NPUMEM_INVALID, "%s has no such parameter: %s", row->name, name);
	return param_add(here, text, params, n_params, error);
}

bool mapping_implies(const char *kernel, const char *role, const char *param)
{
	for (size_t i = 0; i < sizeof(role_rows) / sizeof(role_rows[0]); i++)
		if (!strcmp(role_rows[i].kernel, kernel) && !strcmp(role_rows[i].role, role) &&
		    !strcmp(role_rows[i].param, param))
			return true;
	return false;
}

/* A vector without an activation means none; the device needs the parameter. */
static int act_add(const struct npumem_kernel_row *row, struct npumem_param *params, unsigned *n_params,
		   struct npumem_error *error)
{
	if (!roles_has_param(row, "act"))
		return 0;
	for (unsigned i = 0; i < *n_params; i++)
		if (params[i].number == NPUMEM_PARAM_ACT)
			return 0;
	return param_add("act", "none", params, n_params, error);
}

int mapping_params(const struct vectors_case *one, const struct npumem_kernel_row *row,
		   struct npumem_param *params, unsigned *n_params, struct npumem_error *error)
{
	json_t *object = (json_t *)(uintptr_t)one->params;
	int status = 0;
	*n_params = 0;
	for (void *at = json_object_iter(object); at && !status; at = json_object_iter_next(object, at))
		status = param_map(json_object_iter_key(at), json_object_iter_value(at), row, params, n_params,
				   error);
	for (size_t i = 0; i < sizeof(role_rows) / sizeof(role_rows[0]) && !status; i++)
		for (unsigned k = 0; k < one->n_tensors && !status; k++)
			if (!strcmp(role_rows[i].kernel, one->kernel) &&
			    !strcmp(role_rows[i].role, one->tensors[k].role))
				status =
					param_add(role_rows[i].param, role_rows[i].value, params, n_params, error);
	if (!status)
		status = act_add(row, params, n_params, error);
	/* "any": the case has no tie, so that every rounding gives the same. */
	if (!status && one->rounding && strcmp(one->rounding, "any"))
		status = param_add("rounding", one->rounding, params, n_params, error);
	return status;
}
