/* The words of a call, and the data of its tensors. */
#include "tests/bench/support/call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/support/peer.h"

static _Noreturn void refuse(const char *what, const char *word)
{
	char text[256];
	snprintf(text, sizeof(text), "%s: %.200s", what, word);
	errno = 0;
	peer_die(text);
}

static void parse_rest(struct call_tensor *tensor, const char *rest)
{
	int n = 0;
	char word[16];
	if (sscanf(rest, "~%" SCNd64 "%n", &tensor->most, &n) == 1)
		rest += n;
	if (sscanf(rest, ":%15s", word) != 1)
		return;
	tensor->spec.layout = npumem_layout_parse(word);
	tensor->spec.mode = tensor->spec.layout ? 0 : npumem_mode_parse(word);
	if (!tensor->spec.layout && !tensor->spec.mode)
		refuse("no layout and no mode", word);
}

static void parse_tensor(struct call *call, const char *word)
{
	struct call_tensor *tensor = &call->tensors[call->n_tensors++];
	struct npumem_dims *shape = &tensor->spec.shape;
	char dtype[16];
	int n = 0;
	npumem_spec_init(&tensor->spec);
	if (call->n_tensors > CALL_TENSORS_MAX ||
	    sscanf(word, "%23[^=]=%15[^/]/%" SCNd64 "[%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 "]%n",
		   tensor->role, dtype, &tensor->spec.frac_bits, &shape->n, &shape->c, &shape->h, &shape->w,
		   &n) != 7)
		refuse("no tensor", word);
	tensor->spec.dtype = npumem_dtype_parse(dtype);
	tensor->bytes =
		(size_t)(shape->n * shape->c * shape->h * shape->w) * npumem_dtype_bytes(tensor->spec.dtype);
	if (!tensor->bytes)
		refuse("no type", word);
	parse_rest(tensor, word + n);
}

static void parse_param(struct call *call, char *word)
{
	struct npumem_error error;
	char *value = strchr(word, '=');
	npumem_error_clear(&error);
	if (!value || call->n_params == CALL_PARAMS_MAX)
		refuse("no parameter", word);
	*value++ = '\0';
	if (npumem_param_parse(word, value, &call->params[call->n_params++], &error))
		refuse("no parameter", error.message);
}

void call_parse(struct call *call, const char *text)
{
	char *words = strdup(text), *rest;
	*call = (struct call){.n_tensors = 0};
	char *word = words ? strtok_r(words, " ", &rest) : NULL;
	if (!word || !npumem_kernel_by_name(word))
		refuse("no kernel", text);
	snprintf(call->kernel, sizeof(call->kernel), "%s", word);
	while ((word = strtok_r(NULL, " ", &rest)))
		if (strchr(word, '['))
			parse_tensor(call, word);
		else
			parse_param(call, word);
	free(words);
}

const struct call_tensor *call_find(const struct call *call, const char *role)
{
	for (unsigned i = 0; i < call->n_tensors; i++)
		if (!strcmp(call->tensors[i].role, role))
			return &call->tensors[i];
	return NULL;
}

int64_t call_param(const struct call *call, int number, unsigned i, int64_t fallback)
{
	for (unsigned k = 0; k < call->n_params; k++)
		if (call->params[k].number == number && i < call->params[k].n_values)
			return call->params[k].values[i];
	return fallback;
}

bool call_is_out(const struct call *call, unsigned i)
{
	return !strcmp(call->tensors[i].role, "out") || !strcmp(call->tensors[i].role, "cell_out");
}

/* Each weight meets every point of the output; of a transposed convolution, of the input. */
double call_macs(const struct call *call)
{
	const struct call_tensor *weights = call_find(call, "weights"), *out = call_find(call, "out");
	if (!strcmp(call->kernel, "transpose_conv2d"))
		out = call_find(call, "in");
	if (!weights || !out)
		return 0;
	const struct npumem_dims *w = &weights->spec.shape, *o = &out->spec.shape;
	return (double)(w->n * w->c * w->h * w->w) * (double)(o->n * o->h * o->w);
}

double call_bytes(const struct call *call)
{
	double bytes = 0;
	for (unsigned i = 0; i < call->n_tensors; i++)
		bytes += (double)call->tensors[i].bytes;
	return bytes;
}

static int64_t next(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)(*state >> 33);
}

void *call_data(const struct call *call, unsigned i)
{
	const struct call_tensor *tensor = &call->tensors[i];
	unsigned element = npumem_dtype_bytes(tensor->spec.dtype);
	uint64_t state = 0x9e3779b97f4a7c15u * (i + 1);
	uint8_t *data = malloc(tensor->bytes);
	if (!data)
		peer_die("no memory");
	for (size_t at = 0; at < tensor->bytes; at += element) {
		int64_t value = next(&state);
		if (tensor->most)
			value = value % (2 * tensor->most + 1) - tensor->most;
		float real = (float)(value % 2001 - 1000) / 500;
		memcpy(data + at, tensor->spec.dtype == NPUMEM_FP32 ? (void *)&real : (void *)&value, element);
	}
	return data;
}
