/* The keys of a run: which are tensors by role, which are parameters, by the kernel's row. Checks their form only:
 * which tensors and parameters go together the daemon says. */
#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/reading/load.h"
#include "client/ctl/core/words/words.h"

enum { RUNS_PARAM_BYTES = 96 };

static int add_operand(struct load *load, struct keys *keys, const char *role, size_t index, const json_t *value,
		       struct network_operation *operation)
{
	struct network *network = load->network;
	char text[NPUMEM_FIELD_KEY_BYTES];
	const char *name = json_string_value(value);
	int tensor, length = index == SIZE_MAX ? snprintf(text, sizeof(text), "%s", role)
					       : snprintf(text, sizeof(text), "%s%zu", role, index);
	if (!name || !*name)
		return keys_expected(keys, role, "the name of a tensor");
	if (length < 0 || (size_t)length >= sizeof(text) || operation->n_operands == NPUMEM_OPERANDS_MAX)
		return npumem_error_set(load->error, NPUMEM_INVALID, "%s: more than %d tensors", keys->where,
					NPUMEM_OPERANDS_MAX);
	int status = load_find(load, keys, name, &tensor);
	if (status)
		return status;
	struct network_operand *operand = memory_grow(&network->operands, network->n_operands++, sizeof(*operand));
	memcpy(operand->role, text, sizeof(text));
	operand->tensor = tensor;
	operation->n_operands++;
	return 0;
}

/* "in": ["a", "b"] is in0=a in1=b of a numbered family. */
static int add_operands(struct load *load, struct keys *keys, const char *role, const json_t *value,
			struct network_operation *operation)
{
	int status = 0;
	if (!json_is_array(value))
		return add_operand(load, keys, role, SIZE_MAX, value, operation);
	for (size_t i = 0; i < json_array_size(value) && !status; i++)
		status = add_operand(load, keys, role, i, json_array_get(value, i), operation);
	return status;
}

/* A value as the command line writes it: "1,2". */
static int param_text(struct keys *keys, const char *key, const json_t *value, char *text)
{
	const json_t *one = value;
	size_t at = 0, n = json_is_array(value) ? json_array_size(value) : 1;
	text[0] = 0;
	for (size_t i = 0; i < n && at < RUNS_PARAM_BYTES; i++) {
		one = json_is_array(value) ? json_array_get(value, i) : value;
		if (json_is_integer(one))
			at += (size_t)snprintf(text + at, RUNS_PARAM_BYTES - at, "%s%" JSON_INTEGER_FORMAT,
					       i ? "," : "", json_integer_value(one));
		else if (json_is_string(one))
			at += (size_t)snprintf(text + at, RUNS_PARAM_BYTES - at, "%s%s", i ? "," : "",
					       json_string_value(one));
		else
			return keys_expected(keys, key, "an integer, a word, or a list of them");
	}
	if (at && at < RUNS_PARAM_BYTES)
		return 0;
	return keys_expected(keys, key, "an integer, a word, or a short list of them");
}

static struct npumem_param *new_param(struct network *network, struct network_operation *operation)
{
	operation->n_params++;
	return memory_grow(&network->params, network->n_params++, sizeof(*network->params));
}

static int add_param(struct load *load, struct keys *keys, const char *key, const json_t *value,
		     struct network_operation *operation)
{
	char text[RUNS_PARAM_BYTES];
	struct npumem_error why = {.status = 0};
	int status = param_text(keys, key, value, text);
	if (!status && npumem_param_parse(key, text, new_param(load->network, operation), &why))
		return npumem_error_set(load->error, NPUMEM_INVALID, "%s: %.300s", keys->where, why.message);
	return status;
}

static void add_rounding(struct network *network, struct network_operation *operation)
{
	for (unsigned i = 0; i < operation->n_params; i++)
		if (network->params[operation->param + i].number == network->rounding.number)
			return;
	*new_param(network, operation) = network->rounding;
}

static int read_kernel(struct keys *keys, struct network_operation *operation)
{
	struct npumem_error why = {.status = 0};
	const char *name;
	int status = keys_needs(keys, "run", &name);
	if (status || !roles_kernel(name, &operation->kernel, &why))
		return status;
	return npumem_error_set(keys->error, NPUMEM_INVALID, "%s: %.400s", keys->where, why.message);
}

static int check_run_keys(struct keys *keys, const struct npumem_kernel_row *kernel)
{
	char params[160];
	snprintf(params, sizeof(params), "%s%srounding name comment run", kernel->parameters,
		 *kernel->parameters ? " " : "");
	return keys_check(keys, kernel->roles, params);
}

/* The operands have `role`, or one of its numbered family. */
static bool is_given(const struct network *network, const struct network_operation *operation,
		     const struct lists_word *role)
{
	size_t length = strlen(role->text);
	for (unsigned i = 0; i < operation->n_operands; i++) {
		const char *given = network->operands[operation->operand + i].role;
		if (!strncmp(given, role->text, length) && (role->family || !given[length]))
			return true;
	}
	return false;
}

/* Every role that may not be left out. */
static int check_roles(const struct load *load, struct keys *keys, const struct network_operation *operation)
{
	const char *roles = operation->kernel->roles;
	struct lists_word role;
	while (lists_next(&roles, &role))
		if (!role.optional && !is_given(load->network, operation, &role))
			return npumem_error_set(keys->error, NPUMEM_INVALID, "%s: \"%s\" is missing: a tensor",
						keys->where, role.text);
	return 0;
}

int runs_read(struct load *load, struct keys *keys, struct network_operation *operation)
{
	json_t *object = (json_t *)(uintptr_t)keys->object;
	struct network *network = load->network;
	int status = read_kernel(keys, operation);
	if (!status)
		status = check_run_keys(keys, operation->kernel);
	operation->operand = network->n_operands;
	operation->param = network->n_params;
	for (void *at = json_object_iter(object); at && !status; at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		const json_t *value = json_object_iter_value(at);
		if (!strcmp(key, "run") || !strcmp(key, "name") || !strcmp(key, "comment"))
			continue;
		if (roles_has_param(operation->kernel, key))
			status = add_param(load, keys, key, value, operation);
		else
			status = add_operands(load, keys, key, value, operation);
	}
	if (!status)
		status = check_roles(load, keys, operation);
	if (status)
		return status;
	if (network->rounding.number)
		add_rounding(network, operation);
	operation_append(load, operation);
	return 0;
}
