/* The demo's first program: places the weights of one model in two formats, fx8 and fx16, in local memory under
 * names, writes them, seals them, and ends. Named tensors outlive their session, so the weights stay for whoever
 * opens them. All of it or nothing: on a failure nothing is left behind. */
#include <npumem/client.h>

#include <stdio.h>
#include <string.h>

#include "tests/demo/model.h"

enum { TENSORS_MAX = 2 * 2 * MODEL_LAYERS_MAX };

struct load {
	struct npy values[TENSORS_MAX];
	char names[TENSORS_MAX][NPUMEM_NAME_BYTES_MAX + 1];
	struct npumem_allocation allocations[TENSORS_MAX];
	const struct npumem_tensor *tensors[TENSORS_MAX];
	unsigned n;
};

static int load_add(struct load *load, const char *directory, const struct model *model,
		    const struct model_layer *layer, const char *role, int64_t frac_bits)
{
	struct npumem_allocation *allocation = &load->allocations[load->n];
	struct npy *npy = &load->values[load->n];

	if (model_tensor_read(directory, model, layer, role, npy) != 0)
		return -1;
	model_tensor_name(model, layer, role, load->names[load->n]);
	*allocation = (struct npumem_allocation)NPUMEM_ALLOCATION_INIT;
	allocation->spec.dtype = model->dtype;
	allocation->spec.frac_bits = frac_bits;
	/* Weights are only read, a row of them at a time: compact wastes less than aligned. */
	allocation->spec.layout = NPUMEM_COMPACT;
	allocation->spec.shape = (struct npumem_dims){.n = (int64_t)npy->dims[0],
						      .c = (int64_t)npy->dims[1],
						      .h = (int64_t)npy->dims[2],
						      .w = (int64_t)npy->dims[3]};
	allocation->name = load->names[load->n++];
	return 0;
}

static int load_read(struct load *load, const char *directory, const char *format)
{
	struct model model;

	if (model_read(directory, format, &model) != 0)
		return -1;
	for (unsigned i = 0; i < model.n_layers; i++) {
		const struct model_layer *layer = &model.layers[i];

		if (layer->has_weights &&
		    (load_add(load, directory, &model, layer, "weights", layer->weights_frac_bits) != 0 ||
		     load_add(load, directory, &model, layer, "bias", layer->bias_frac_bits) != 0))
			return -1;
	}
	return 0;
}

static int load_place(struct npumem *npumem, struct load *load, struct npumem_error *error)
{
	uint64_t handles[TENSORS_MAX];
	int status = npumem_alloc(npumem, load->allocations, load->n, load->tensors, error);

	if (status != 0)
		return status;
	for (unsigned i = 0; i < load->n && status == 0; i++) {
		handles[i] = load->tensors[i]->handle;
		status =
			npumem_write(npumem, load->tensors[i], load->values[i].data, load->values[i].bytes, error);
		if (status == 0)
			status = npumem_seal(npumem, handles[i], error);
	}
	if (status != 0) {
		for (unsigned i = 0; i < load->n; i++)
			handles[i] = load->tensors[i]->handle;
		npumem_free(npumem, handles, load->n, NULL);
	}
	return status;
}

static void load_print(const struct load *load)
{
	printf("load: %u tensors placed, written and sealed\n", load->n);
	for (unsigned i = 0; i < load->n; i++) {
		const struct npumem_place *place = &load->tensors[i]->place;

		printf("  %-26s %-4s Q.%-3lld shape %lld,%lld,%lld,%lld: %lld bytes per NPU\n", load->names[i],
		       npumem_dtype_name(place->dtype), (long long)place->frac_bits, (long long)place->shape.n,
		       (long long)place->shape.c, (long long)place->shape.h, (long long)place->shape.w,
		       (long long)place->bytes_per_npu);
	}
}

int main(int argc, char **argv)
{
	static struct load load;
	struct npumem_error error;
	struct npumem *npumem;
	int status;

	npumem_error_clear(&error);
	if (argc != 2) {
		fprintf(stderr, "usage: demo_load MODEL_DIRECTORY\n");
		return 2;
	}
	status = load_read(&load, argv[1], "fx8") != 0 || load_read(&load, argv[1], "fx16") != 0;
	if (status == 0) {
		status = npumem_open(NULL, NULL, &npumem, &error);
		if (status == 0) {
			status = load_place(npumem, &load, &error);
			if (status == 0)
				load_print(&load);
			npumem_close(npumem);
		}
		if (status != 0)
			fprintf(stderr, "demo_load: %s\n", error.message);
	}
	for (unsigned i = 0; i < load.n; i++)
		npy_deinit(&load.values[i]);
	return status != 0;
}
