/* A float forward pass, one digit at a time, as plain as it can be: the layers as the training has them, with
 * padding and relu taken from the model and a stride of 1 for convolutions, the kernel's size for pooling. */
#include "tests/demo/reference.h"

#include <stdio.h>
#include <string.h>

enum { VALUES_MAX = 4096 };

/* One digit's activations, C,H,W. */
struct picture {
	struct npumem_dims dims;
	float values[VALUES_MAX];
};

struct layer_weights {
	struct npy weights, bias;
};

static float *value_at(struct picture *picture, int64_t c, int64_t h, int64_t w)
{
	return &picture->values[(c * picture->dims.h + h) * picture->dims.w + w];
}

static int64_t param_value(const struct model_layer *layer, int number, unsigned i, int64_t fallback)
{
	const struct npumem_param *param = model_layer_param(layer, number);

	return param ? param->values[i] : fallback;
}

/* Weights [I,O,kh,kw]. A fully connected layer is the one window that covers a picture of 1x1. */
static void convolve(const struct model_layer *layer, const struct layer_weights *from, struct picture *in,
		     struct picture *out)
{
	const float *weights = from->weights.data, *bias = from->bias.data;
	int64_t n_out = (int64_t)from->weights.dims[1];
	int64_t kh = (int64_t)from->weights.dims[2], kw = (int64_t)from->weights.dims[3];
	int64_t top = param_value(layer, NPUMEM_PARAM_PADDING, 0, 0);
	int64_t left = param_value(layer, NPUMEM_PARAM_PADDING, 2, 0);

	for (int64_t o = 0; o < out->dims.c; o++)
		for (int64_t y = 0; y < out->dims.h; y++)
			for (int64_t x = 0; x < out->dims.w; x++) {
				float sum = bias[o];

				for (int64_t i = 0; i < in->dims.c; i++)
					for (int64_t dy = 0; dy < kh; dy++)
						for (int64_t dx = 0; dx < kw; dx++) {
							int64_t h = y + dy - top, w = x + dx - left;

							if (h < 0 || h >= in->dims.h || w < 0 || w >= in->dims.w)
								continue;
							sum += *value_at(in, i, h, w) *
							       weights[((i * n_out + o) * kh + dy) * kw + dx];
						}
				if (param_value(layer, NPUMEM_PARAM_RELU, 0, 1) == 2 && sum < 0)
					sum = 0;
				*value_at(out, o, y, x) = sum;
			}
}

static void pool(const struct model_layer *layer, struct picture *in, struct picture *out)
{
	int64_t kh = param_value(layer, NPUMEM_PARAM_KERNEL, 0, 1);
	int64_t kw = param_value(layer, NPUMEM_PARAM_KERNEL, 1, 1);

	for (int64_t c = 0; c < out->dims.c; c++)
		for (int64_t y = 0; y < out->dims.h; y++)
			for (int64_t x = 0; x < out->dims.w; x++) {
				float most = *value_at(in, c, y * kh, x * kw);

				for (int64_t i = 1; i < kh * kw; i++) {
					float value = *value_at(in, c, y * kh + i / kw, x * kw + i % kw);

					most = value > most ? value : most;
				}
				*value_at(out, c, y, x) = most;
			}
}

static unsigned digit_classify(const struct model *model, const struct layer_weights *weights,
			       const uint8_t *pixels)
{
	static struct picture pictures[2];
	struct picture *in = &pictures[0], *out = &pictures[1], *swap;
	unsigned best = 0;

	in->dims = model->in;
	for (int64_t i = 0; i < in->dims.c * in->dims.h * in->dims.w; i++)
		in->values[i] = (float)pixels[i] / 16.0f;
	for (unsigned i = 0; i < model->n_layers; i++) {
		out->dims = model->layers[i].out;
		if (strcmp(model->layers[i].kernel, "maxpool") == 0) {
			pool(&model->layers[i], in, out);
		} else {
			if (strcmp(model->layers[i].kernel, "fully_connected") == 0)
				in->dims = (struct npumem_dims){1, in->dims.c * in->dims.h * in->dims.w, 1, 1};
			convolve(&model->layers[i], &weights[i], in, out);
		}
		swap = in;
		in = out;
		out = swap;
	}
	for (unsigned i = 1; i < MODEL_CLASSES; i++)
		if (in->values[i] > in->values[best])
			best = i;
	return best;
}

/* Every index above stays in its array if the chain of shapes fits. */
static int chain_check(const struct model *model, const struct layer_weights *weights, size_t pixels_each)
{
	struct npumem_dims in = model->in;

	if (in.c * in.h * in.w != (int64_t)pixels_each)
		return -1;
	for (unsigned i = 0; i < model->n_layers; i++) {
		const struct model_layer *layer = &model->layers[i];
		int64_t flat = in.c * in.h * in.w;

		if (flat > VALUES_MAX || layer->out.c * layer->out.h * layer->out.w > VALUES_MAX)
			return -1;
		if (!layer->has_weights) {
			int64_t kh = param_value(layer, NPUMEM_PARAM_KERNEL, 0, 1);
			int64_t kw = param_value(layer, NPUMEM_PARAM_KERNEL, 1, 1);

			if (kh < 1 || kw < 1 || layer->out.c != in.c || layer->out.h > in.h / kh ||
			    layer->out.w > in.w / kw)
				return -1;
		} else if ((int64_t)weights[i].bias.n_elements != layer->out.c ||
			   (int64_t)weights[i].weights.dims[1] != layer->out.c ||
			   (int64_t)weights[i].weights.dims[0] !=
				   (strcmp(layer->kernel, "fully_connected") == 0 ? flat : in.c)) {
			return -1;
		}
		in = layer->out;
	}
	return in.h == 1 && in.w == 1 ? 0 : -1;
}

int reference_run(const char *directory, const struct model_digits *digits, unsigned *n_right)
{
	struct layer_weights weights[MODEL_LAYERS_MAX];
	struct model model;
	int result = model_read(directory, "float", &model);

	memset(weights, 0, sizeof(weights));
	for (unsigned i = 0; result == 0 && i < model.n_layers; i++)
		if (model.layers[i].has_weights &&
		    (model_tensor_read(directory, &model, &model.layers[i], "weights", &weights[i].weights) != 0 ||
		     model_tensor_read(directory, &model, &model.layers[i], "bias", &weights[i].bias) != 0))
			result = -1;
	if (result == 0 && chain_check(&model, weights, digits->pixels_each) != 0) {
		fprintf(stderr, "%s: the shapes of the float model do not fit together\n", directory);
		result = -1;
	}
	*n_right = 0;
	for (size_t i = 0; result == 0 && i < digits->n; i++) {
		const uint8_t *pixels = (const uint8_t *)digits->pixels.data + i * digits->pixels_each;

		*n_right += digit_classify(&model, weights, pixels) == ((const uint8_t *)digits->labels.data)[i];
	}
	for (unsigned i = 0; i < MODEL_LAYERS_MAX; i++) {
		npy_deinit(&weights[i].weights);
		npy_deinit(&weights[i].bias);
	}
	return result;
}
