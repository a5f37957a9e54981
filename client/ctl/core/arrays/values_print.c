/* Numbers as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/ctl/core/arrays/values.h"
#include "client/ctl/core/jsons.h"

enum { VALUES_TEXT_BYTES = 32 };

static int number_text(const struct values *values, size_t i, char *text)
{
	return snprintf(text, VALUES_TEXT_BYTES, values->is_real ? "%.9g" : "%.0f", values->data[i]);
}

static void print_index(FILE *out, const struct values *values, size_t plane)
{
	int64_t index[NPY_DIMS_MAX] = {0};
	for (unsigned d = values->n_dims - 2; d-- > 0; plane /= (size_t)values->shape[d])
		index[d] = (int64_t)(plane % (size_t)values->shape[d]);
	for (unsigned d = 0; d < values->n_dims - 2; d++)
		fprintf(out, "%s%" PRId64, d ? "," : "[", index[d]);
	fputs("]\n", out);
}

void values_print(FILE *out, const struct values *values)
{
	size_t cols = (size_t)values->shape[values->n_dims - 1], rows = (size_t)values->shape[values->n_dims - 2];
	char text[VALUES_TEXT_BYTES];
	int width = 0;
	for (size_t i = 0; i < values->n; i++) {
		int length = number_text(values, i, text);
		width = length > width ? length : width;
	}
	for (size_t i = 0; i < values->n; i++) {
		if (values->n_dims > 2 && i % (rows * cols) == 0)
			print_index(out, values, i / (rows * cols));
		number_text(values, i, text);
		fprintf(out, "%s%*s%s", i % cols ? " " : "", width, text, (i + 1) % cols ? "" : "\n");
	}
}

static json_t *nested(const struct values *values, unsigned dim, size_t *at)
{
	if (dim == values->n_dims) {
		double value = values->data[(*at)++];
		if (!isfinite(value))
			return json_null();
		return values->is_real ? json_real(value) : json_integer((json_int_t)value);
	}
	json_t *array = json_array();
	for (int64_t i = 0; i < values->shape[dim]; i++)
		jsons_append(&array, nested(values, dim + 1, at));
	return array;
}

json_t *values_json(const struct values *values)
{
	size_t at = 0;
	return nested(values, 0, &at);
}
