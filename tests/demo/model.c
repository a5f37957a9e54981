/* Reads model.json and the files beside it. A model that does not fit the fixed sizes of struct model is refused
 * when it is read, so that nobody after that has to look. Says why on stderr. */
#include "tests/demo/model.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static int refuse(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	return -1;
}

static int text_copy(char to[MODEL_TEXT_BYTES], const json_t *from)
{
	const char *text = json_string_value(from);

	if (!text || strlen(text) >= MODEL_TEXT_BYTES)
		return -1;
	strcpy(to, text);
	return 0;
}

static int dims_parse(const json_t *from, struct npumem_dims *dims)
{
	int64_t extents[3];

	if (json_array_size(from) != 3)
		return -1;
	for (size_t i = 0; i < 3; i++) {
		extents[i] = json_integer_value(json_array_get(from, i));
		if (extents[i] < 1 || extents[i] > 4096)
			return -1;
	}
	*dims = (struct npumem_dims){.n = 1, .c = extents[0], .h = extents[1], .w = extents[2]};
	return 0;
}

static int params_parse(const char *path, json_t *from, struct model_layer *layer)
{
	struct npumem_error error = {0};
	const char *name;
	json_t *value;

	json_object_foreach(from, name, value)
	{
		if (layer->n_params == MODEL_PARAMS_MAX || !json_is_string(value))
			return refuse(path, "a layer has too many parameters, or one that is no string");
		if (npumem_param_parse(name, json_string_value(value), &layer->params[layer->n_params++],
				       &error) != 0)
			return refuse(path, error.message);
	}
	return 0;
}

/* `format` has no frac_bits where it is float. */
static int frac_bits_parse(const json_t *from, struct model_layer *layer)
{
	const json_t *weights = json_object_get(from, "weights");
	const json_t *bias = json_object_get(from, "bias");
	const json_t *out = json_object_get(from, "out");

	if (!json_is_integer(out) || (layer->has_weights && (!json_is_integer(weights) || !json_is_integer(bias))))
		return -1;
	layer->weights_frac_bits = json_integer_value(weights);
	layer->bias_frac_bits = json_integer_value(bias);
	layer->out_frac_bits = json_integer_value(out);
	return 0;
}

static int layer_parse(const char *path, const json_t *from, const struct model *model, struct model_layer *layer)
{
	const json_t *frac_bits = json_object_get(from, "frac_bits");

	if (text_copy(layer->name, json_object_get(from, "name")) != 0 ||
	    text_copy(layer->kernel, json_object_get(from, "kernel")) != 0 ||
	    dims_parse(json_object_get(from, "out"), &layer->out) != 0)
		return refuse(path, "a layer needs a name, a kernel and an out of C,H,W");
	layer->has_weights = strcmp(layer->kernel, "maxpool") != 0;
	if (npumem_dtype_is_fixed(model->dtype) &&
	    frac_bits_parse(json_object_get(frac_bits, model->format), layer) != 0)
		return refuse(path, "a layer lacks frac_bits for this format");
	return params_parse(path, json_object_get(from, "params"), layer);
}

static int root_parse(const char *path, const json_t *root, struct model *model)
{
	const json_t *in = json_object_get(root, "input");
	const json_t *layers = json_object_get(root, "layers");
	const json_t *frac_bits = json_object_get(in, "frac_bits");

	if (dims_parse(json_object_get(in, "shape"), &model->in) != 0 || !json_is_integer(frac_bits))
		return refuse(path, "the input needs a shape of C,H,W and frac_bits");
	model->in_frac_bits = json_integer_value(frac_bits);
	if (json_array_size(layers) < 1 || json_array_size(layers) > MODEL_LAYERS_MAX)
		return refuse(path, "no layers, or too many");
	for (size_t i = 0; i < json_array_size(layers); i++)
		if (layer_parse(path, json_array_get(layers, i), model, &model->layers[model->n_layers++]) != 0)
			return -1;
	if (model->layers[model->n_layers - 1].out.c != MODEL_CLASSES)
		return refuse(path, "the last layer does not have a score per class");
	return 0;
}

int model_read(const char *directory, const char *format, struct model *model)
{
	char path[MODEL_PATH_BYTES];
	json_error_t error;
	json_t *root;
	int result;

	memset(model, 0, sizeof(*model));
	model->dtype = strcmp(format, "float") == 0 ? NPUMEM_FP32 : npumem_dtype_parse(format);
	if (model->dtype != NPUMEM_FP32 && !npumem_dtype_is_fixed(model->dtype))
		return refuse(format, "not a format; fx8, fx16 and float are");
	snprintf(model->format, sizeof(model->format), "%s", format);
	snprintf(path, sizeof(path), "%s/model.json", directory);
	root = json_load_file(path, 0, &error);
	if (!root)
		return refuse(path, error.text);
	result = root_parse(path, root, model);
	json_decref(root);
	return result;
}

void model_tensor_name(const struct model *model, const struct model_layer *layer, const char *role,
		       char name[NPUMEM_NAME_BYTES_MAX + 1])
{
	snprintf(name, NPUMEM_NAME_BYTES_MAX + 1, "digits.%s.%s.%s", model->format, layer->name, role);
}

int model_tensor_read(const char *directory, const struct model *model, const struct model_layer *layer,
		      const char *role, struct npy *npy)
{
	const char *type = model->dtype == NPUMEM_FX8 ? "i1" : model->dtype == NPUMEM_FX16 ? "i2" : "f4";
	char path[MODEL_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s.%s.%s.npy", directory, model->format, layer->name, role);
	if (npy_read(path, type, npy) != 0)
		return -1;
	if (npy->n_dims != 4) {
		npy_deinit(npy);
		return refuse(path, "not four dimensions");
	}
	return 0;
}

int model_digits_read(const char *directory, struct model_digits *digits)
{
	char path[MODEL_PATH_BYTES];

	memset(digits, 0, sizeof(*digits));
	snprintf(path, sizeof(path), "%s/digits.npy", directory);
	if (npy_read(path, "u1", &digits->pixels) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/labels.npy", directory);
	if (npy_read(path, "u1", &digits->labels) != 0) {
		model_digits_deinit(digits);
		return -1;
	}
	digits->n = digits->pixels.dims[0];
	digits->pixels_each = digits->pixels.n_elements / digits->n;
	if (digits->labels.n_elements != digits->n) {
		model_digits_deinit(digits);
		return refuse(path, "not as many labels as digits");
	}
	for (size_t i = 0; i < digits->n; i++) {
		if (((const uint8_t *)digits->labels.data)[i] >= MODEL_CLASSES) {
			model_digits_deinit(digits);
			return refuse(path, "a label above 9");
		}
	}
	return 0;
}

void model_digits_deinit(struct model_digits *digits)
{
	npy_deinit(&digits->pixels);
	npy_deinit(&digits->labels);
}

const struct npumem_param *model_layer_param(const struct model_layer *layer, int number)
{
	for (unsigned i = 0; i < layer->n_params; i++)
		if (layer->params[i].number == number)
			return &layer->params[i];
	return NULL;
}
