/* Which tensors have samples along N, and how many of them fit. Invariant: the network itself stays as it is; what
 * fits is asked of lives_compute, as plan asks it. */
#include "client/ctl/core/network/planning/planning.h"

#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

#define BATCHES_LIMIT INT64_C(0x7fffffff)

struct search {
	const struct network *network;
	const struct npumem_geometry *geometry;
	struct network scaled; /* the tensors are a copy */
	bool *has_samples;     /* by root */
	int64_t n;	       /* N of the input, as it is written */
};

static bool has_samples(const struct search *search, int tensor)
{
	return search->has_samples[network_root(search->network, tensor)];
}

/* True where it is new. */
static bool mark(struct search *search, int tensor)
{
	bool *mark = &search->has_samples[network_root(search->network, tensor)];
	bool is_new = !*mark;
	*mark = true;
	return is_new;
}

static const struct npumem_param *param_of(const struct search *search, const struct network_operation *operation,
					   int number)
{
	for (unsigned i = 0; i < operation->n_params; i++)
		if (search->network->params[operation->param + i].number == number)
			return &search->network->params[operation->param + i];
	return NULL;
}

/* Each sample of the outputs is of the same sample of the inputs. */
static bool keeps_samples(const struct search *search, const struct network_operation *operation)
{
	static const char each[] =
		"conv2d group_conv2d depthwise_conv2d transpose_conv2d fully_connected rnn_dense "
		"matmul maxpool avepool relu leaky_relu sigmoid tanh lut convert_tensor pad2d mac "
		"eltwise_add eltwise_sub eltwise_mul eltwise_div eltwise_min eltwise_max";
	const struct npumem_param *axis = param_of(search, operation, NPUMEM_PARAM_AXIS),
				  *perm = param_of(search, operation, NPUMEM_PARAM_PERM);
	enum { AXIS_N = 2 }; /* none and n do not */
	if (lists_has("softmax l2_normalize prelu concat", operation->kernel->name))
		return axis && axis->values[0] > AXIS_N;
	if (operation->kernel->number == NPUMEM_KERNEL_PERMUTE)
		return perm && (perm->n_values == 3 || perm->values[0] == 0);
	return lists_has(each, operation->kernel->name);
}

static int refuse(const struct search *search, const struct network_operation *operation, const char *what,
		  struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	npumem_error_set(&why, NPUMEM_INVALID, "--max-batch: %s", what);
	return network_about(search->network, operation, &why, error);
}

/* An operand beside the samples must be for all of them. */
static int check_operand(const struct search *search, const struct network_operation *operation,
			 const struct network_operand *operand, struct npumem_error *error)
{
	bool is_data = lists_has("in in1 in2 acc left", operand->role) ||
		       (operand->role[0] == 'i' && operand->role[1] == 'n');
	bool is_factor = operation->kernel->number == NPUMEM_KERNEL_MAC && strcmp(operand->role, "acc") != 0;
	bool spreads = is_factor || !strncmp(operation->kernel->name, "eltwise_", strlen("eltwise_"));
	struct npumem_place place;
	if (has_samples(search, operand->tensor))
		return is_data ? 0 : refuse(search, operation, "weights that are computed from the input", error);
	if (!is_data)
		return 0;
	if (spreads && network_array(search->network, operand->tensor, &place) && place.shape.n == 1)
		return 0;
	return refuse(search, operation, "an input beside it is not one for all samples", error);
}

/* True where something new has samples. */
static bool spread(struct search *search, const struct network_operation *operation)
{
	const struct network_operand *operands = &search->network->operands[operation->operand];
	bool any = false, changed = false;
	if (operation->kind == NETWORK_COPY)
		return has_samples(search, operation->source) && mark(search, operation->tensor);
	for (unsigned i = 0; i < operation->n_operands; i++)
		any |= !network_writes(operation, &operands[i]) && has_samples(search, operands[i].tensor);
	for (unsigned i = 0; i < operation->n_operands && any; i++)
		if (network_writes(operation, &operands[i]))
			changed |= mark(search, operands[i].tensor);
	return changed;
}

static int check_operation(const struct search *search, const struct network_operation *operation,
			   struct npumem_error *error)
{
	const struct network *network = search->network;
	const struct network_operand *operands = &network->operands[operation->operand];
	bool any = false;
	int status = 0;
	if (operation->kind == NETWORK_VIEW && has_samples(search, operation->tensor)) {
		const struct network_tensor *view = &network->tensors[operation->tensor];
		struct npumem_place base;
		network_array(network, view->base, &base);
		bool whole = view->is_slice ? view->from.n == 0 && view->to.n == base.shape.n
					    : view->shape.n == base.shape.n;
		return whole || view->is_format ? 0 : refuse(search, operation, "a view of some samples", error);
	}
	for (unsigned i = 0; i < operation->n_operands; i++)
		any |= has_samples(search, operands[i].tensor);
	if (any && !keeps_samples(search, operation))
		return refuse(search, operation, "N is not a batch here", error);
	for (unsigned i = 0; i < operation->n_operands && any && !status; i++)
		if (!network_writes(operation, &operands[i]))
			status = check_operand(search, operation, &operands[i], error);
	return status;
}

static int64_t *extent_of(struct network_tensor *tensor)
{
	return tensor->spec.rows ? &tensor->spec.rows : &tensor->spec.shape.n;
}

static int find_samples(struct search *search, const char *input, struct npumem_error *error)
{
	const struct network *network = search->network;
	int tensor = NETWORK_NONE, status = 0;
	bool changed = true;
	for (size_t i = 0; i < network->n_tensors && tensor == NETWORK_NONE; i++)
		if (!strcmp(network->tensors[i].name, input))
			tensor = (int)i;
	if (tensor == NETWORK_NONE)
		return npumem_error_set(error, NPUMEM_INVALID, "--max-batch: no tensor \"%.63s\"", input);
	tensor = network_root(network, tensor);
	mark(search, tensor);
	while (changed) {
		changed = false;
		for (size_t i = 0; i < network->n_operations; i++)
			changed |= spread(search, &network->operations[i]);
	}
	for (size_t i = 0; i < network->n_operations && !status; i++)
		status = check_operation(search, &network->operations[i], error);
	search->n = *extent_of(&network->tensors[tensor]);
	for (size_t i = 0; i < network->n_tensors && !status; i++) {
		struct network_tensor *one = &network->tensors[i];
		if (!search->has_samples[i])
			continue;
		if (one->is_opened || search->n < 1 || *extent_of(one) % search->n)
			status = npumem_error_set(
				error, NPUMEM_INVALID,
				"--max-batch: the N of \"%.63s\" does not go by that of \"%.63s\"", one->name,
				input);
	}
	return status;
}

/* The peak with so many samples: NPUMEM_ANY where a tensor can lie on no such device. */
static void try_batch(struct search *search, int64_t batch, int64_t *peak, bool *fits)
{
	struct lives lives;
	*peak = NPUMEM_ANY;
	*fits = false;
	for (size_t i = 0; i < search->network->n_tensors; i++)
		if (search->has_samples[i])
			*extent_of(&search->scaled.tensors[i]) =
				*extent_of(&search->network->tensors[i]) / search->n * batch;
	if (!lives_compute(&search->scaled, search->geometry, &lives, NULL)) {
		*peak = lives.peak;
		*fits = lives.crowded == lives.n;
	}
	memory_free(lives.list);
}

/* The peak grows with the batch, so halving finds where it passes an NPU's bytes; whether there is room for each
 * in its turn need not, so from there on each is tried. */
static void find_most(struct search *search, struct batches *batches)
{
	int64_t low = 0, high = BATCHES_LIMIT, peak = 0;
	bool fits = false;
	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;
		try_batch(search, middle, &peak, &fits);
		if (peak != NPUMEM_ANY && peak <= search->geometry->npu_bytes)
			low = middle;
		else
			high = middle - 1;
	}
	for (fits = false; low > 0 && !fits; low -= !fits)
		try_batch(search, low, &batches->peak, &fits);
	batches->most = low;
	try_batch(search, low + 1, &batches->next, &fits);
}

int batches_most(const struct network *network, const struct npumem_geometry *geometry, const char *input,
		 struct batches *batches, struct npumem_error *error)
{
	size_t n = network->n_tensors;
	struct search search = {.network = network, .geometry = geometry, .scaled = *network};
	*batches = (struct batches){.most = 0};
	search.has_samples = memory_new(n, sizeof(*search.has_samples));
	search.scaled.tensors = memory_new(n, sizeof(*search.scaled.tensors));
	if (n)
		memcpy(search.scaled.tensors, network->tensors, n * sizeof(*network->tensors));
	int status = find_samples(&search, input, error);
	if (!status)
		find_most(&search, batches);
	return status;
}
