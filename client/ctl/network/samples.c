/* Where there is room for all tensors of the network at once they stay from the first sample to the last,
 * constants are written once, and what is left is one list that the daemon keeps, if it fits one. Else each sample
 * is a run of its own. */
#include "client/ctl/network/networks.h"

#include <string.h>
#include <unistd.h>

#include "client/ctl/core/memory.h"

/* ---- files ---- */

static bool is_input(const struct network_operation *operation)
{
	return operation->kind == NETWORK_WRITE && operation->converts;
}

/* The file of "TENSOR=FILE,…" for a tensor, and its length; NULL: there is none. */
static const char *file_of(const char *text, const char *tensor, size_t *length)
{
	size_t n = strlen(tensor);
	for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (strncmp(at, tensor, n) || at[n] != '=')
			continue;
		*length = strcspn(at + n + 1, ",");
		return at + n + 1;
	}
	return NULL;
}

static int path_of(const struct samples *samples, const char *tensor, char *path, size_t bytes,
		   struct npumem_error *why)
{
	size_t length = strlen(samples->text);
	const char *own = file_of(samples->text, tensor, &length), *file = own ? own : samples->text;
	bool archive = length > 4 && !strncmp(file + length - 4, ".npz", 4);
	if (!own && samples->n_inputs > 1 && !archive)
		return npumem_error_set(why, NPUMEM_INVALID,
					"--samples: the network quantizes %u files: give TENSOR=FILE,… for each, "
					"also for %.63s",
					samples->n_inputs, tensor);
	if (length + strlen(tensor) + 1 >= bytes)
		return npumem_error_set(why, NPUMEM_INVALID, "--samples: a path of %zu bytes is too long", length);
	snprintf(path, bytes, "%.*s%s%s", (int)length, file, archive ? ":" : "", archive ? tensor : "");
	return 0;
}

int samples_open(const struct execute *execute, size_t i, struct stream *stream, struct npumem_error *why)
{
	const struct network_operation *operation = &execute->network->operations[i];
	const struct npumem_place *place = &execute->tensors[operation->tensor]->place;
	int rounding = network_rounding(execute->network, operation, execute->info->rounding);
	struct samples *samples = execute->samples;
	char path[4096];
	size_t n;
	int status = path_of(samples, execute->network->tensors[operation->tensor].name, path, sizeof(path), why);
	if (!status)
		status = stream_open_sample(stream, path, place, samples->at, rounding, &n, why);
	if (status)
		return status;
	n = samples->most && n > samples->most ? samples->most : n;
	if (!samples->n)
		samples->n = n;
	if (samples->n == n)
		return 0;
	stream_close(stream, 0, why);
	return npumem_error_set(why, NPUMEM_INVALID, "%.200s has %zu samples, and another input has %zu", path, n,
				samples->n);
}

/* Refuses TENSOR=FILE where TENSOR is not an input. The file of a network's only input may have = in its path. */
static int check_names(const struct network *network, const struct samples *samples, struct npumem_error *why)
{
	char known[NPUMEM_MESSAGE_BYTES / 2] = "";
	for (const char *at = samples->text; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strcspn(at, "=,"), used = 0;
		bool found = at[n] != '=' || (samples->n_inputs == 1 && !access(samples->text, F_OK));
		for (size_t i = 0; i < network->n_operations && !found && used < sizeof(known); i++) {
			const char *name = network->tensors[network->operations[i].tensor].name;
			if (!is_input(&network->operations[i]))
				continue;
			found = strlen(name) == n && !strncmp(name, at, n);
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "",
						 name);
		}
		if (!found)
			return npumem_error_set(why, NPUMEM_INVALID,
						"--samples: the network has no input \"%.*s\"; it has: %s",
						n < 64 ? (int)n : 64, at, known);
	}
	return 0;
}

static int check_inputs(struct execute *execute, struct samples *samples)
{
	const struct network *network = execute->network;
	struct npumem_error *why = &execute->ctl->error;
	char path[4096];
	for (size_t i = 0; i < network->n_operations; i++)
		samples->n_inputs += is_input(&network->operations[i]);
	if (!samples->n_inputs)
		return ctl_fail(execute->ctl,
				"--samples: no file of the network is quantized, so none is an input");
	int status = check_names(network, samples, why);
	for (size_t i = 0; i < network->n_operations && !status; i++)
		if (is_input(&network->operations[i]))
			status = path_of(samples, network->tensors[network->operations[i].tensor].name, path,
					 sizeof(path), why);
	return status ? CTL_FAILED : CTL_OK;
}

/* ---- what is done once ---- */

/* What is known of a tensor's storage. */
struct storage {
	unsigned n_writers;
	bool is_read_in; /* one of them is a file of integers */
};

static void find_writers(const struct network *network, struct storage *storages)
{
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct network_operation *operation = &network->operations[i];
		if (operation->kind == NETWORK_WRITE || operation->kind == NETWORK_FILL ||
		    operation->kind == NETWORK_COPY) {
			struct storage *storage = &storages[network_root(network, operation->tensor)];
			storage->n_writers++;
			storage->is_read_in |=
				operation->kind == NETWORK_WRITE && !operation->converts && !operation->part;
		}
		for (unsigned k = 0; operation->kind == NETWORK_RUN && k < operation->n_operands; k++) {
			const struct network_operand *operand = &network->operands[operation->operand + k];
			if (network_writes(operation, operand))
				storages[network_root(network, operand->tensor)].n_writers++;
		}
	}
}

/* Tensors that come and go by operations of the file may need each other's room, or each other's names. */
static bool may_hold(const struct network *network)
{
	for (size_t i = 0; i < network->n_operations; i++) {
		const struct network_operation *operation = &network->operations[i];
		if (operation->kind == NETWORK_SEAL ||
		    ((operation->kind == NETWORK_ALLOC || operation->kind == NETWORK_FREE) &&
		     !operation->is_implied))
			return false;
	}
	for (size_t i = 0; i < network->n_tensors; i++)
		if (network->tensors[i].reuse == NPUMEM_UNCHECKED)
			return false;
	return true;
}

static bool is_once(const struct network *network, const struct network_operation *operation,
		    const struct storage *storages, bool holds_all)
{
	if (operation->kind > NETWORK_WRITE || operation->kind == NETWORK_SEAL)
		return false;
	int root = network_root(network, operation->tensor);
	bool is_constant =
		storages[root].n_writers == 1 && storages[root].is_read_in && !network->tensors[root].is_opened;
	return is_constant || (holds_all && operation->kind != NETWORK_WRITE);
}

/* Sets execute->once where the tensors may stay: all of them, or constants. */
static bool find_once(struct execute *execute, bool holds_all)
{
	const struct network *network = execute->network;
	if (!may_hold(network))
		return false;
	struct storage *storages = memory_new(network->n_tensors, sizeof(*storages));
	find_writers(network, storages);
	execute->once = memory_new(network->n_operations, sizeof(*execute->once));
	execute->holds_all = holds_all;
	for (size_t i = 0; i < network->n_operations; i++)
		execute->once[i] = is_once(network, &network->operations[i], storages, holds_all);
	return true;
}

/* ---- running ---- */

/* The first sample with all tensors at once; where these find no room, with the constants to stay; or as the
 * network says. */
static int run_first(struct execute *execute)
{
	struct npumem_error *error = &execute->ctl->error;
	int code = CTL_OK;
	for (bool holds_all = true; !code && find_once(execute, holds_all); holds_all = false) {
		code = execute_run(execute);
		if (!code || error->status != NPUMEM_RESOURCE_EXHAUSTED)
			return code;
		execute->once = NULL;
		execute->holds_all = false;
		code = execute_reset(execute);
		npumem_error_clear(error);
		if (!holds_all)
			break;
	}
	return code ? code : execute_run(execute);
}

int samples_run(struct execute *execute, const char *text, size_t most)
{
	struct samples samples = {.text = text, .most = most};
	int code = check_inputs(execute, &samples);
	if (code)
		return code;
	execute->samples = &samples;
	code = run_first(execute);
	for (samples.at = 1; samples.at < samples.n && !code; samples.at++)
		code = execute_run(execute);
	if (execute->once && !code)
		code = execute_let_go(execute);
	execute->samples = NULL;
	return code;
}
