/* The demo's worker: classifies digits K, K + N, K + 2N, … with weights that another process left on the device.
 * The weights are opened by name and shared with every other worker; the activations are this process's own and
 * die with it. A batch is one message: pixels in, a kernel per layer, scores out.
 * Writes a line per digit to RESULTS (format, digit, label, predicted, the ten scores); the argmax is done here.
 */
#include <npumem/client.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/demo/model.h"

enum { BATCH = 25, OPERANDS = 4 };

/* activations[0] is the input, activations[i + 1] the output of layer i. */
struct classify {
	struct npumem *npumem;
	struct model model;
	struct model_digits digits;
	const struct npumem_tensor *activations[MODEL_LAYERS_MAX + 1];
	struct npumem_operand operands[MODEL_LAYERS_MAX][OPERANDS];
	struct npumem_operation operations[MODEL_LAYERS_MAX + 2]; /* write, the layers, read */
	unsigned n_operations;
	/* What travels: containers of either format. */
	union {
		int8_t fx8[BATCH * 64];
		int16_t fx16[BATCH * 64];
	} pixels;
	union {
		int8_t fx8[BATCH * MODEL_CLASSES];
		int16_t fx16[BATCH * MODEL_CLASSES];
	} scores;
	unsigned n_digits, n_right;
	int64_t saturated, wrapped;
};

static int activations_alloc(struct classify *classify, struct npumem_error *error)
{
	const struct model *model = &classify->model;
	struct npumem_allocation allocations[MODEL_LAYERS_MAX + 1];

	for (unsigned i = 0; i <= model->n_layers; i++) {
		struct npumem_spec *spec = &allocations[i].spec;

		allocations[i] = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
		spec->dtype = model->dtype;
		spec->frac_bits = i == 0 ? model->in_frac_bits : model->layers[i - 1].out_frac_bits;
		spec->shape = i == 0 ? model->in : model->layers[i - 1].out;
		spec->shape.n = BATCH;
	}
	return npumem_alloc(classify->npumem, allocations, model->n_layers + 1, classify->activations, error);
}

/* Finds a tensor of the weights and sees that nobody can change it any more. */
static int weights_open(struct classify *classify, const struct model_layer *layer, const char *role,
			struct npumem_operand *operand, struct npumem_error *error)
{
	char name[NPUMEM_NAME_BYTES_MAX + 1];
	const struct npumem_tensor *tensor;
	int status;

	model_tensor_name(&classify->model, layer, role, name);
	status = npumem_open_tensor(classify->npumem, name, &tensor, error);
	if (status != 0)
		return status;
	if (!tensor->sealed)
		return npumem_error_set(error, NPUMEM_FAILED_PRECONDITION, "%s is not sealed", name);
	*operand = (struct npumem_operand){.role = role, .handle = tensor->handle};
	return 0;
}

static int layer_prepare(struct classify *classify, unsigned i, struct npumem_error *error)
{
	const struct model_layer *layer = &classify->model.layers[i];
	struct npumem_operand *operands = classify->operands[i];
	unsigned n = 0;
	int status;

	operands[n++] = (struct npumem_operand){.role = "in", .handle = classify->activations[i]->handle};
	if (layer->has_weights) {
		status = weights_open(classify, layer, "weights", &operands[n++], error);
		if (status == 0)
			status = weights_open(classify, layer, "bias", &operands[n++], error);
		if (status != 0)
			return status;
	}
	operands[n++] = (struct npumem_operand){.role = "out", .handle = classify->activations[i + 1]->handle};
	classify->operations[classify->n_operations++] =
		(struct npumem_operation){.size = sizeof(struct npumem_operation),
					  .kind = NPUMEM_OP_RUN,
					  .kernel = layer->kernel,
					  .operands = operands,
					  .n_operands = n,
					  .params = layer->params,
					  .n_params = layer->n_params};
	return 0;
}

static int classify_prepare(struct classify *classify, struct npumem_error *error)
{
	size_t container = npumem_dtype_bytes(classify->model.dtype);
	unsigned n_layers = classify->model.n_layers;
	int status = activations_alloc(classify, error);

	if (status != 0)
		return status;
	classify->operations[classify->n_operations++] =
		(struct npumem_operation){.size = sizeof(struct npumem_operation),
					  .kind = NPUMEM_OP_WRITE,
					  .handle = classify->activations[0]->handle,
					  .data = &classify->pixels,
					  .bytes = BATCH * classify->digits.pixels_each * container};
	for (unsigned i = 0; i < n_layers; i++) {
		status = layer_prepare(classify, i, error);
		if (status != 0)
			return status;
	}
	classify->operations[classify->n_operations++] =
		(struct npumem_operation){.size = sizeof(struct npumem_operation),
					  .kind = NPUMEM_OP_READ,
					  .handle = classify->activations[n_layers]->handle,
					  .data = &classify->scores,
					  .bytes = (size_t)BATCH * MODEL_CLASSES * container};
	return 0;
}

/* A pixel of 0..16 stands for 0..1: in the input's Q.4 it is its own value, exactly. */
static void pixels_put(struct classify *classify, unsigned slot, const uint8_t *from)
{
	size_t each = classify->digits.pixels_each;

	for (size_t i = 0; i < each; i++) {
		if (classify->model.dtype == NPUMEM_FX8)
			classify->pixels.fx8[slot * each + i] = (int8_t)from[i];
		else
			classify->pixels.fx16[slot * each + i] = from[i];
	}
}

static void digit_judge(struct classify *classify, size_t digit, unsigned slot, FILE *results)
{
	unsigned label = ((const uint8_t *)classify->digits.labels.data)[digit];
	int scores[MODEL_CLASSES];
	unsigned best = 0;

	for (unsigned i = 0; i < MODEL_CLASSES; i++) {
		scores[i] = classify->model.dtype == NPUMEM_FX8 ? classify->scores.fx8[slot * MODEL_CLASSES + i]
								: classify->scores.fx16[slot * MODEL_CLASSES + i];
		if (scores[i] > scores[best])
			best = i;
	}
	fprintf(results, "%s %zu %u %u", classify->model.format, digit, label, best);
	for (unsigned i = 0; i < MODEL_CLASSES; i++)
		fprintf(results, " %d", scores[i]);
	fputc('\n', results);
	classify->n_digits++;
	classify->n_right += best == label;
}

/* Digits first, first + step, …, up to a batch of them. Where fewer are left, the last places hold blank pictures
 * and nobody looks at their scores. */
static int batch_run(struct classify *classify, size_t first, size_t step, FILE *results,
		     struct npumem_error *error)
{
	const uint8_t *pixels = classify->digits.pixels.data;
	const struct npumem_submitted *ran;
	int status;

	memset(&classify->pixels, 0, sizeof(classify->pixels));
	for (unsigned slot = 0; slot < BATCH && first + slot * step < classify->digits.n; slot++)
		pixels_put(classify, slot, pixels + (first + slot * step) * classify->digits.pixels_each);
	status = npumem_submit(classify->npumem, classify->operations, classify->n_operations, &ran, error);
	for (unsigned i = 0; i < (ran ? ran->n_ran : 0); i++) {
		classify->saturated += ran->done[i]->saturated;
		classify->wrapped += ran->done[i]->wrapped;
	}
	npumem_release(ran);
	if (status != 0)
		return status;
	for (unsigned slot = 0; slot < BATCH && first + slot * step < classify->digits.n; slot++)
		digit_judge(classify, first + slot * step, slot, results);
	return 0;
}

/* Everything is open and placed; the workers of a demo begin together, when their standard input ends. */
static void start_wait(FILE *results)
{
	char ignored[64];

	fprintf(results, "ready\n");
	fflush(results);
	while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0)
		continue;
}

static int classify_run(struct classify *classify, size_t k, size_t n, FILE *results, struct npumem_error *error)
{
	int status = npumem_open(NULL, NULL, &classify->npumem, error);

	if (status != 0)
		return status;
	status = classify_prepare(classify, error);
	if (status == 0) {
		start_wait(results);
		for (size_t first = k; first < classify->digits.n && status == 0; first += BATCH * n)
			status = batch_run(classify, first, n, results, error);
	}
	npumem_close(classify->npumem);
	return status;
}

static int share_parse(const char *k_text, const char *n_text, size_t *k, size_t *n)
{
	char *k_end, *n_end;
	unsigned long k_value = strtoul(k_text, &k_end, 10), n_value = strtoul(n_text, &n_end, 10);

	if (*k_text == 0 || *n_text == 0 || *k_end != 0 || *n_end != 0 || n_value == 0 || n_value > 1000 ||
	    k_value >= n_value)
		return -1;
	*k = k_value;
	*n = n_value;
	return 0;
}

int main(int argc, char **argv)
{
	static struct classify classify;
	struct npumem_error error;
	FILE *results;
	size_t k, n;
	int status;

	npumem_error_clear(&error);
	if (argc != 6 || share_parse(argv[3], argv[4], &k, &n) != 0) {
		fprintf(stderr,
			"usage: demo_classify MODEL_DIRECTORY fx8|fx16 K N RESULTS   (0 <= K < N <= 1000)\n");
		return 2;
	}
	if (model_read(argv[1], argv[2], &classify.model) != 0 ||
	    model_digits_read(argv[1], &classify.digits) != 0)
		return 1;
	if (!npumem_dtype_is_fixed(classify.model.dtype) || classify.digits.pixels_each != 64) {
		fprintf(stderr, "demo_classify: only fx8 and fx16, only pictures of 64 pixels\n");
		return 1;
	}
	results = fopen(argv[5], "w");
	if (!results) {
		perror(argv[5]);
		return 1;
	}
	status = classify_run(&classify, k, n, results, &error);
	if (fclose(results) != 0 && status == 0)
		status = npumem_error_set(&error, NPUMEM_INTERNAL, "the results cannot be written");
	if (status == 0)
		printf("  classify %s, process %zu of %zu: %u digits in batches of %d, %u right; "
		       "%lld outputs saturated, %lld accumulators wrapped\n",
		       classify.model.format, k + 1, n, classify.n_digits, BATCH, classify.n_right,
		       (long long)classify.saturated, (long long)classify.wrapped);
	else
		fprintf(stderr, "demo_classify: %s\n", error.message);
	model_digits_deinit(&classify.digits);
	return status != 0;
}
