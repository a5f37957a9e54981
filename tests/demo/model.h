/* The demo's model as model.json describes it: a chain of layers, each one kernel of npumem. What a process needs
 * to know to find the weights by name and to run the chain; the weights' values stay in their files, or on the
 * device. */
#ifndef DEMO_MODEL_H
#define DEMO_MODEL_H

#include <npumem/client.h>

#include "tests/demo/npy.h"

enum {
	MODEL_LAYERS_MAX = 8,
	MODEL_PARAMS_MAX = 4,
	MODEL_TEXT_BYTES = 24,
	MODEL_CLASSES = 10,
	MODEL_PATH_BYTES = 4096,
};

struct model_layer {
	char name[MODEL_TEXT_BYTES];
	char kernel[MODEL_TEXT_BYTES];
	struct npumem_dims out; /* of one digit: n is 1 */
	struct npumem_param params[MODEL_PARAMS_MAX];
	unsigned n_params;
	bool has_weights; /* and a bias */
	int64_t weights_frac_bits, bias_frac_bits, out_frac_bits;
};

struct model {
	char format[8]; /* "fx8", "fx16" or "float" */
	int dtype;
	struct npumem_dims in;
	int64_t in_frac_bits;
	struct model_layer layers[MODEL_LAYERS_MAX];
	unsigned n_layers;
};

/* The digits to classify: 8x8 pixels of 0..16 each, and what they really are. */
struct model_digits {
	struct npy pixels, labels;
	size_t n, pixels_each;
};

/* Reads DIRECTORY/model.json for one format. 0; or -1, with one line on stderr. */
int model_read(const char *directory, const char *format, struct model *model);

/* What the tensor of `role` ("weights", "bias") of a layer is called on the device, and the file it comes from. */
void model_tensor_name(const struct model *model, const struct model_layer *layer, const char *role,
		       char name[NPUMEM_NAME_BYTES_MAX + 1]);
/* Reads that file: elements of the model's format, four dimensions. 0; or -1, with one line on stderr. */
int model_tensor_read(const char *directory, const struct model *model, const struct model_layer *layer,
		      const char *role, struct npy *npy);

/* Reads the digits and their labels. 0; or -1, with one line on stderr. */
int model_digits_read(const char *directory, struct model_digits *digits);
void model_digits_deinit(struct model_digits *digits);

/* The layer's parameter `number`, or NULL where it has none. */
const struct npumem_param *model_layer_param(const struct model_layer *layer, int number);

#endif
