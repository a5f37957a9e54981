/* Reads a network and says where in it something is. Invariant: an operation names only tensors that are there
 * when its turn comes. */
#include "client/ctl/core/network/network.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/ctl/core/network/load.h"
#include "client/ctl/core/roles.h"
#include "client/ctl/core/suggest.h"

void *load_grow(void **items, size_t *n, size_t *room, size_t bytes)
{
	if (*n == *room) {
		size_t more = *room ? 2 * *room : 16;
		void *moved = realloc(*items, more * bytes);
		if (!moved)
			return NULL;
		*items = moved;
		*room = more;
	}
	return memset((char *)*items + (*n)++ * bytes, 0, bytes);
}

int load_no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory for the network");
}

int load_emit(struct load *load, const struct network_operation *operation)
{
	struct network *network = load->network;
	struct network_operation *to = load_grow((void **)&network->operations, &network->n_operations,
						 &network->operations_room, sizeof(*to));
	if (!to)
		return load_no_memory(load->error);
	*to = *operation;
	return 0;
}

int load_find(struct load *load, const struct keys *keys, const char *name, int *tensor)
{
	const json_t *there = json_object_get(load->scope, name), *gone = json_object_get(load->gone, name);
	const struct network_operation nowhere = {.place = 0};
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	if (there) {
		*tensor = (int)json_integer_value(there);
		const struct network_tensor *found = &load->network->tensors[*tensor];
		return found->is_declared && found->born == NETWORK_NONE
			       ? tensor_born(load, *tensor, load->at ? load->at : &nowhere)
			       : 0;
	}
	if (gone)
		return npumem_error_set(load->error, NPUMEM_INVALID,
					"%s: tensor \"%.63s\" was freed by operation %lld", keys->where, name,
					(long long)json_integer_value(gone));
	suggest_init(&suggest, name);
	for (void *at = json_object_iter(load->scope); at; at = json_object_iter_next(load->scope, at))
		suggest_offer(&suggest, json_object_iter_key(at));
	return npumem_error_set(load->error, NPUMEM_INVALID, "%s: no tensor \"%.63s\"%s", keys->where, name,
				suggest_text(&suggest, nearest));
}

/* ---- reading ---- */

static int read_declared(struct load *load, const char *name, const json_t *json)
{
	struct network *network = load->network;
	char where[NETWORK_TEXT_BYTES];
	const struct keys keys = {json, where, load->error};
	int index;
	snprintf(where, sizeof(where), "tensor \"%.63s\"", name);
	if (!*name || !json_is_object(json))
		return npumem_error_set(load->error, NPUMEM_INVALID, "%s is no object like {\"shape\": …}", where);
	int status = tensor_new(load, &keys, name, &index);
	if (status)
		return status;
	network->tensors[index].is_declared = true;
	return tensor_parse(&keys, "", &network->tensors[index]);
}

/* What stands beside "operations". */
static int read_whole(struct load *load)
{
	struct network *network = load->network;
	json_t *whole = network->document.whole, *tensors = json_object_get(whole, "tensors");
	const struct keys keys = {whole, "the network", load->error};
	int rounding = 0, status = keys_check(&keys, "name tensors operations rounding comment", "");
	if (!status)
		status = keys_string(&keys, "name", &network->name);
	if (!status)
		status = keys_name(&keys, "rounding", "rounding", npumem_rounding_parse, npumem_rounding_name,
				   &rounding);
	if (!status && rounding)
		status = npumem_param_parse("rounding", npumem_rounding_name(rounding), &network->rounding,
					    load->error);
	if (!status && tensors && !json_is_object(tensors))
		return keys_expected(&keys, "tensors", "an object of names and tensors");
	for (void *at = json_object_iter(tensors); at && !status; at = json_object_iter_next(tensors, at))
		status = read_declared(load, json_object_iter_key(at), json_object_iter_value(at));
	return status;
}

/* One operation, or a group, of the file: those before it that it needs, then it. */
static int read_operation(struct load *load, size_t i)
{
	struct network *network = load->network;
	struct network_operation at = {.place = (unsigned)i + 1};
	if (network->document.lines)
		at.line = network->document.lines[i];
	load->n_pending = 0;
	load->at = &at;
	int status = operation_read(load, json_array_get(network->document.operations, i), &at);
	for (size_t k = 0; k < load->n_pending && !status; k++) {
		const struct network_operation *one = &load->pending[k];
		if (one->kind == NETWORK_OPEN || one->kind == NETWORK_VIEW)
			network->tensors[one->tensor].born = (int)network->n_operations;
		status = load_emit(load, one);
	}
	return status;
}

static int read_all(struct load *load)
{
	const struct network *network = load->network;
	int status = network->document.whole ? read_whole(load) : 0;
	for (size_t i = 0; i < json_array_size(network->document.operations) && !status; i++)
		status = read_operation(load, i);
	return status ? status : lower(load);
}

static int read_network(struct network *network, struct npumem_error *error)
{
	struct load load = {.network = network, .scope = json_object(), .gone = json_object(), .error = error};
	int status = load.scope && load.gone ? read_all(&load) : load_no_memory(error);
	json_decref(load.scope);
	json_decref(load.gone);
	free(load.pending);
	return status;
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return strndup(path, slash ? (size_t)(slash - path) + 1 : 0);
}

/* An importer leaves a folder with a network of this name. */
static char *file_of(const char *path)
{
	struct stat about;
	size_t bytes = strlen(path) + sizeof("/network.json");
	bool is_folder = !stat(path, &about) && S_ISDIR(about.st_mode);
	char *file = malloc(bytes);
	if (file)
		snprintf(file, bytes, is_folder ? "%s/network.json" : "%s", path);
	return file;
}

int network_load(const char *path, struct network *network, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	bool is_stdin = !strcmp(path, "-");
	*network = (struct network){.file = file_of(path)};
	network->folder = network->file ? folder_of(network->file) : NULL;
	int status = network->folder ? 0 : load_no_memory(&why);
	FILE *file = status ? NULL : is_stdin ? stdin : fopen(network->file, "rb");
	if (!status && !file)
		status = npumem_error_set(&why, NPUMEM_INVALID, "%s", strerror(errno));
	if (!status) {
		status = document_read(file, &network->document, &why);
		if (status)
			network->document = (struct document){.root = NULL};
	}
	if (file && !is_stdin)
		fclose(file);
	if (!status)
		status = read_network(network, &why);
	if (!status)
		return 0;
	npumem_error_set(error, status, "%.200s: %.300s",
			 is_stdin	 ? "stdin"
			 : network->file ? network->file
					 : path,
			 why.message);
	network_deinit(network);
	return status;
}

void network_deinit(struct network *network)
{
	document_deinit(&network->document);
	free(network->file);
	free(network->folder);
	free(network->tensors);
	free(network->operations);
	free(network->operands);
	free(network->params);
}

/* ---- saying where ---- */

const char *network_number(const struct network_operation *operation, char text[24])
{
	if (operation->part)
		snprintf(text, 24, "%u.%u", operation->place, operation->part);
	else
		snprintf(text, 24, "%u", operation->place);
	return text;
}

const char *network_what(const struct network *network, const struct network_operation *operation, char *text)
{
	const char *subject =
		operation->kernel ? operation->kernel->name : network->tensors[operation->tensor].name;
	snprintf(text, NETWORK_TEXT_BYTES, "%s %.100s", network_kind_name(operation->kind), subject);
	return text;
}

const char *network_where(const struct network *network, const struct network_operation *operation, char *text)
{
	char number[24], line[24] = "", what[NETWORK_TEXT_BYTES] = "";
	const char *name = operation->name && !operation->is_implied ? operation->name : "";
	if (operation->is_implied && network->tensors[operation->tensor].is_declared) {
		snprintf(text, NETWORK_TEXT_BYTES, "tensor \"%.63s\"", network->tensors[operation->tensor].name);
		return text;
	}
	if (operation->line)
		snprintf(line, sizeof(line), " (line %d)", operation->line);
	if (operation->kind)
		network_what(network, operation, what);
	snprintf(text, NETWORK_TEXT_BYTES, "operation %s%s%.63s%s%s%.100s", network_number(operation, number),
		 *name ? " " : "", name, line, *what ? ", " : "", what);
	return text;
}

int network_rounding(const struct network *network, const struct network_operation *operation, int of_device)
{
	if (operation->rounding)
		return operation->rounding;
	return network->rounding.number ? (int)network->rounding.values[0] : of_device;
}

int network_about(const struct network *network, const struct network_operation *operation,
		  const struct npumem_error *why, struct npumem_error *error)
{
	char where[NETWORK_TEXT_BYTES];
	return npumem_error_set(error, why->status, "%s: %.340s", network_where(network, operation, where),
				why->message);
}

/* ---- facts ---- */

bool network_writes(const struct network_operation *operation, const struct network_operand *operand)
{
	switch (operation->kind) {
	case NETWORK_RUN:
		return roles_is_output(operation->kernel, operand->role);
	case NETWORK_WRITE:
	case NETWORK_FILL:
	case NETWORK_COPY:
		return true;
	default:
		return false;
	}
}

int network_root(const struct network *network, int tensor)
{
	while (network->tensors[tensor].base != NETWORK_NONE)
		tensor = network->tensors[tensor].base;
	return tensor;
}

char *network_path(const struct network *network, const char *file)
{
	size_t bytes = strlen(network->folder) + strlen(file) + 1;
	char *path = malloc(bytes);
	if (path)
		snprintf(path, bytes, "%s%s", *file == '/' ? "" : network->folder, file);
	return path;
}

bool network_array(const struct network *network, int tensor, struct npumem_place *place)
{
	const struct network_tensor *one = &network->tensors[tensor];
	const struct npumem_spec *spec = &one->spec;
	if (one->base == NETWORK_NONE) {
		*place = (struct npumem_place){.dtype = spec->dtype,
					       .frac_bits = spec->frac_bits,
					       .layout = spec->layout ? spec->layout : NPUMEM_ALIGNED,
					       .shape = spec->shape,
					       .rows = spec->rows,
					       .cols = spec->cols};
		return !one->is_opened;
	}
	if (!network_array(network, one->base, place))
		return false;
	if (one->is_format) {
		place->frac_bits = one->frac_bits;
		return true;
	}
	place->layout = NPUMEM_ALIGNED;
	place->shape = one->shape;
	if (one->is_slice)
		place->shape = (struct npumem_dims){one->to.n - one->from.n, one->to.c - one->from.c,
						    one->to.h - one->from.h, one->to.w - one->from.w};
	return true;
}
