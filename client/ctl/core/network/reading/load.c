/* Reads a network. Invariant: an operation names only tensors that are there when its turn comes. */
#include "client/ctl/core/network/reading/load.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "client/ctl/core/memory.h"
#include "client/ctl/core/words/words.h"

void load_emit(struct load *load, const struct network_operation *operation)
{
	struct network *network = load->network;
	struct network_operation *to = memory_grow(&network->operations, network->n_operations++, sizeof(*to));
	*to = *operation;
}

int load_find(struct load *load, struct keys *keys, const char *name, int *tensor)
{
	const json_t *there = json_object_get(load->scope, name), *gone = json_object_get(load->gone, name);
	const struct network_operation nowhere = {.place = 0};
	char nearest[SUGGEST_TEXT_BYTES];
	struct suggest suggest;
	if (there) {
		*tensor = (int)json_integer_value(there);
		const struct network_tensor *found = &load->network->tensors[*tensor];
		if (found->is_declared && found->born == NETWORK_NONE)
			tensor_born(load, *tensor, load->at ? load->at : &nowhere);
		return 0;
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
	struct keys keys = {json, where, load->error, 0};
	int index;
	snprintf(where, sizeof(where), "tensor \"%.63s\"", name);
	if (!*name || !json_is_object(json))
		return npumem_error_set(load->error, NPUMEM_INVALID, "%s is not an object like {\"shape\": …}",
					where);
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
	struct keys keys = {whole, "the network", load->error, 0};
	int rounding = 0;
	keys_check(&keys, "name tensors operations rounding comment", "");
	keys_string(&keys, "name", &network->name);
	int status =
		keys_name(&keys, "rounding", "rounding", npumem_rounding_parse, npumem_rounding_name, &rounding);
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
		load_emit(load, one);
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
	return read_all(&load);
}

static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return memory_text("%.*s", slash ? (int)(slash - path) + 1 : 0, path);
}

/* An importer leaves a folder with a network of this name. */
static char *file_of(const char *path)
{
	struct stat about;
	bool is_folder = !stat(path, &about) && S_ISDIR(about.st_mode);
	return memory_text(is_folder ? "%s/network.json" : "%s", path);
}

int network_load(const char *path, struct network *network, struct npumem_error *error)
{
	struct npumem_error why = {.status = 0};
	bool is_stdin = !strcmp(path, "-");
	*network = (struct network){.file = file_of(path)};
	network->folder = folder_of(network->file);
	FILE *file = is_stdin ? stdin : fopen(network->file, "rb");
	int status = file ? document_read(file, &network->document, &why)
			  : npumem_error_set(&why, NPUMEM_INVALID, "%s", strerror(errno));
	if (file && !is_stdin)
		fclose(file);
	if (!status)
		status = read_network(network, &why);
	return status ? npumem_error_set(error, status, "%.200s: %.300s", is_stdin ? "stdin" : network->file,
					 why.message)
		      : 0;
}
