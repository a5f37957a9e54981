/* What the tensors of a network ask for beyond its operations, made into operations of its list: one that is
 * expected to hold something is compared after the last operation that writes it, one of "tensors" goes after its
 * last use. A parallel group is one place: nothing is put into it. */
#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/reading/load.h"

/* Per tensor the operation after which something is to come, NETWORK_NONE: nothing; and lists of them. */
struct lower {
	struct network *network;
	int *last_use, *last_write; /* of each tensor; of a view's base, too */
	int *uses, *writes;	    /* per operation the first tensor of its list */
	int *next_use, *next_write; /* per tensor the one after it */
};

/* The last operation of the group that operation i is in. */
static int group_end(const struct network *network, size_t i)
{
	const struct network_operation *operations = network->operations;
	while (operations[i].part && i + 1 < network->n_operations && operations[i + 1].part &&
	       operations[i + 1].place == operations[i].place)
		i++;
	return (int)i;
}

static void note(struct lower *lower, int tensor, bool writes, int at)
{
	const struct network *network = lower->network;
	for (; tensor != NETWORK_NONE; tensor = network->tensors[tensor].base) {
		lower->last_use[tensor] = at;
		if (writes)
			lower->last_write[tensor] = at;
	}
}

static void note_all(struct lower *lower)
{
	const struct network *network = lower->network;
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct network_operation *operation = &network->operations[i];
		int at = group_end(network, i);
		if (operation->kind != NETWORK_RUN)
			note(lower, operation->tensor, network_writes(operation, NULL), at);
		if (operation->kind == NETWORK_COPY)
			note(lower, operation->source, false, at);
		for (unsigned k = 0; k < operation->n_operands; k++) {
			const struct network_operand *operand = &network->operands[operation->operand + k];
			note(lower, operand->tensor, network_writes(operation, operand), at);
		}
	}
}

/* Backwards, so that each list is in the order of the tensors. */
static int list_all(struct lower *lower, struct npumem_error *error)
{
	const struct network *network = lower->network;
	for (size_t i = 0; i < network->n_operations; i++)
		lower->uses[i] = lower->writes[i] = NETWORK_NONE;
	for (int i = (int)network->n_tensors - 1; i >= 0; i--) {
		const struct network_tensor *tensor = &network->tensors[i];
		int use = lower->last_use[i], write = lower->last_write[i];
		if (tensor->expect && write == NETWORK_NONE)
			return npumem_error_set(
				error, NPUMEM_INVALID,
				"tensor \"%.63s\" is to hold \"%.100s\", but no operation writes it", tensor->name,
				tensor->expect);
		if (tensor->expect) {
			lower->next_write[i] = lower->writes[write];
			lower->writes[write] = i;
		}
		if (tensor->is_declared && !tensor->keep && use != NETWORK_NONE) {
			lower->next_use[i] = lower->uses[use];
			lower->uses[use] = i;
		}
	}
	return 0;
}

static void emit(struct load *load, enum network_kind kind, int tensor, const struct network_operation *after)
{
	const struct network_tensor *one = &load->network->tensors[tensor];
	struct keys keys = {one->json, "", NULL, 0};
	struct network_operation operation = {.kind = kind,
					      .place = after->place,
					      .line = after->line,
					      .is_implied = true,
					      .name = after->name,
					      .tensor = tensor};
	if (kind == NETWORK_EXPECT) {
		operation.file = one->expect;
		tensor_conversion(&keys, "quantize", &operation);
	}
	load_emit(load, &operation);
}

/* The operations anew, with what comes between them. */
static void rebuild(struct load *load, const struct lower *lower)
{
	struct network *network = load->network;
	const struct network_operation *old = network->operations;
	size_t n = network->n_operations;
	network->operations = NULL;
	network->n_operations = 0;
	for (size_t i = 0; i < n; i++) {
		load_emit(load, &old[i]);
		for (int t = lower->writes[i]; t != NETWORK_NONE; t = lower->next_write[t])
			emit(load, NETWORK_EXPECT, t, &old[i]);
		for (int t = lower->uses[i]; t != NETWORK_NONE; t = lower->next_use[t])
			emit(load, NETWORK_FREE, t, &old[i]);
	}
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct network_operation *operation = &network->operations[i];
		if (operation->kind <= NETWORK_VIEW)
			network->tensors[operation->tensor].born = (int)i;
	}
}

int lower(struct load *load)
{
	struct network *network = load->network;
	size_t n = network->n_tensors, m = network->n_operations;
	int *memory = memory_new(4 * n + 2 * m, sizeof(int));
	struct lower lower = {.network = network,
			      .last_use = memory,
			      .last_write = memory + n,
			      .next_use = memory + 2 * n,
			      .next_write = memory + 3 * n,
			      .uses = memory + 4 * n,
			      .writes = memory + 4 * n + m};
	for (size_t i = 0; i < 2 * n; i++)
		memory[i] = NETWORK_NONE;
	note_all(&lower);
	int status = list_all(&lower, load->error);
	if (!status)
		rebuild(load, &lower);
	return status;
}
