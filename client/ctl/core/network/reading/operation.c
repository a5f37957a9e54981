/* One operation of a network: a row for each kind, with the keys that it takes and how they are read. Another kind
 * is a row here, an enum value, and a case where it is executed. */
#include "client/ctl/core/memory.h"
#include "client/ctl/core/network/network.h"
#include "client/ctl/core/network/reading/load.h"

#include <string.h>

#include "client/ctl/core/words/words.h"

enum { OPERATION_GROUP_MAX = 256 };

typedef int operation_reader(struct load *load, struct keys *keys, struct network_operation *operation);

static operation_reader read_alloc, read_open, read_view, read_free, read_seal, read_write, read_fill, read_copy,
	read_read, read_host;

/* In the order of enum network_kind. `groups`: may be in a parallel group. */
static const struct row {
	const char *name, *keys;
	bool groups;
	operation_reader *read;
} rows[] = {
	{"alloc", NULL, false, read_alloc},
	{"open", "from", false, read_open},
	{"view", "of from to shape frac_bits", false, read_view},
	{"free", "", false, read_free},
	{"seal", "", false, read_seal},
	{"write", "file quantize rounding perm", true, read_write},
	{"fill", "value", true, read_fill},
	{"copy", "from", true, read_copy},
	{"run", NULL, true, runs_read},
	{"read", "file dequantize shape", true, read_read},
	{"expect", "file quantize rounding perm", false, read_write},
	{"host", NULL, false, read_host},
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char names[] = "alloc open view free seal write fill copy run read expect parallel";

const char *network_kind_name(enum network_kind kind)
{
	return rows[kind - 1].name;
}

void operation_append(struct load *load, const struct network_operation *operation)
{
	struct network_operation *to = memory_grow(&load->pending, load->n_pending++, sizeof(*to));
	*to = *operation;
}

/* Once all of it was read right. */
static int append(struct load *load, const struct network_operation *operation, int status)
{
	if (!status)
		operation_append(load, operation);
	return status;
}

/* The tensor that a key names. */
static int read_tensor(struct load *load, struct keys *keys, const char *key, int *tensor)
{
	const char *name;
	int status = keys_needs(keys, key, &name);
	return status ? status : load_find(load, keys, name, tensor);
}

/* ---- a kind each ---- */

static int read_alloc(struct load *load, struct keys *keys, struct network_operation *operation)
{
	const char *name;
	int status = keys_needs(keys, "alloc", &name);
	if (!status)
		status = tensor_new(load, keys, name, &operation->tensor);
	if (!status)
		status = tensor_parse(keys, "alloc name", &load->network->tensors[operation->tensor]);
	if (!status)
		tensor_born(load, operation->tensor, operation);
	return status;
}

static int read_open(struct load *load, struct keys *keys, struct network_operation *operation)
{
	const char *name, *from = NULL;
	int status = keys_needs(keys, "open", &name);
	if (!status)
		status = keys_string(keys, "from", &from);
	if (!status)
		status = tensor_new(load, keys, name, &operation->tensor);
	if (status)
		return status;
	struct network_tensor *tensor = &load->network->tensors[operation->tensor];
	tensor->is_opened = true;
	tensor->daemon_name = from ? from : name;
	return append(load, operation, 0);
}

static int read_view(struct load *load, struct keys *keys, struct network_operation *operation)
{
	const char *name;
	struct network_tensor view = {.is_format = json_object_get(keys->object, "frac_bits")};
	view.is_slice = !view.is_format && !json_object_get(keys->object, "shape");
	int base, status = keys_needs(keys, "view", &name);
	if (!status)
		status = read_tensor(load, keys, "of", &base);
	if (!status)
		status = tensor_new(load, keys, name, &operation->tensor);
	if (status)
		return status;
	keys_dims(keys, "shape", &view.shape);
	keys_dims(keys, "from", &view.from);
	keys_dims(keys, "to", &view.to);
	if (view.is_format)
		keys_count(keys, "frac_bits", &view.frac_bits);
	if (keys->status)
		return keys->status;
	bool has_from = json_object_get(keys->object, "from"), has_to = json_object_get(keys->object, "to");
	if ((view.is_slice ? !has_from || !has_to : has_from || has_to) ||
	    (view.is_format && json_object_get(keys->object, "shape")))
		return npumem_error_set(
			load->error, NPUMEM_INVALID,
			"%s: a view takes \"from\" and \"to\" (a slice), or \"shape\", or \"frac_bits\"",
			keys->where);
	struct network_tensor *tensor = &load->network->tensors[operation->tensor];
	tensor->is_slice = view.is_slice;
	tensor->from = view.from;
	tensor->to = view.to;
	tensor->shape = view.shape;
	tensor->is_format = view.is_format;
	tensor->frac_bits = view.frac_bits;
	tensor->base = base;
	load->network->tensors[network_root(load->network, base)].has_views = true;
	return append(load, operation, 0);
}

static void forget_one(struct load *load, int tensor, unsigned place)
{
	const char *name = load->network->tensors[tensor].name;
	const json_t *there = json_object_get(load->scope, name);
	if (!there || json_integer_value(there) != tensor)
		return;
	json_object_set_new(load->gone, name, json_integer(place));
	json_object_del(load->scope, name);
}

/* A tensor's name is not found any more, nor are those of its views, which come after it. */
static void forget(struct load *load, int tensor, unsigned place)
{
	const struct network *network = load->network;
	forget_one(load, tensor, place);
	if (!network->tensors[network_root(network, tensor)].has_views)
		return;
	for (int i = tensor + 1; i < (int)network->n_tensors; i++) {
		int base = i;
		while (base > tensor && network->tensors[base].base != NETWORK_NONE)
			base = network->tensors[base].base;
		if (base == tensor)
			forget_one(load, i, place);
	}
}

static int free_one(struct load *load, struct keys *keys, const char *name, struct network_operation *operation)
{
	int status = load_find(load, keys, name, &operation->tensor);
	if (status)
		return status;
	if (load->network->tensors[operation->tensor].is_declared)
		return npumem_error_set(load->error, NPUMEM_INVALID,
					"%s: \"%.63s\" is one of \"tensors\", which go after their last use",
					keys->where, name);
	operation_append(load, operation);
	forget(load, operation->tensor, operation->place);
	return 0;
}

static int read_free(struct load *load, struct keys *keys, struct network_operation *operation)
{
	const json_t *list = json_object_get(keys->object, "free");
	const char *name;
	int status = 0;
	if (!json_is_array(list)) {
		status = keys_needs(keys, "free", &name);
		return status ? status : free_one(load, keys, name, operation);
	}
	for (size_t i = 0; i < json_array_size(list) && !status; i++) {
		name = json_string_value(json_array_get(list, i));
		status = name ? free_one(load, keys, name, operation)
			      : keys_expected(keys, "free", "a name or a list of names");
	}
	return status;
}

static int read_seal(struct load *load, struct keys *keys, struct network_operation *operation)
{
	return append(load, operation, read_tensor(load, keys, "seal", &operation->tensor));
}

/* write, expect */
static int read_write(struct load *load, struct keys *keys, struct network_operation *operation)
{
	int status = read_tensor(load, keys, network_kind_name(operation->kind), &operation->tensor);
	if (!status)
		status = keys_needs(keys, "file", &operation->file);
	if (!status)
		status = tensor_conversion(keys, "quantize", operation);
	return append(load, operation, status);
}

static int read_read(struct load *load, struct keys *keys, struct network_operation *operation)
{
	int status = read_tensor(load, keys, "read", &operation->tensor);
	if (!status)
		status = keys_needs(keys, "file", &operation->file);
	if (!status && outputs_leaves(operation->file))
		status = npumem_error_set(keys->error, NPUMEM_INVALID,
					  "%s: \"file\": \"%.100s\" is not below the folder of --out: it must be "
					  "relative, without \"..\"",
					  keys->where, operation->file);
	if (!status)
		status = keys_bool(keys, "dequantize", &operation->converts);
	operation->shape = json_object_get(keys->object, "shape");
	return append(load, operation, status);
}

static int read_fill(struct load *load, struct keys *keys, struct network_operation *operation)
{
	int status = read_tensor(load, keys, "fill", &operation->tensor);
	if (!status)
		status = tensor_value(keys, "value", operation);
	return append(load, operation, status);
}

static int read_copy(struct load *load, struct keys *keys, struct network_operation *operation)
{
	int status = read_tensor(load, keys, "copy", &operation->tensor);
	if (!status)
		status = read_tensor(load, keys, "from", &operation->source);
	return append(load, operation, status);
}

/* npumem-import --host writes such steps; no kind stands for them, as nothing here runs them. */
static int read_host(struct load *load, struct keys *keys, struct network_operation *operation)
{
	(void)operation;
	return npumem_error_set(load->error, NPUMEM_INVALID,
				"%s: it runs on the host, between two lists of operations; python3 -m "
				"npumem.onnx.run runs this network",
				keys->where);
}

/* ---- which kind ---- */

static int unknown(struct load *load, const json_t *json, const struct network_operation *at)
{
	json_t *object = (json_t *)(uintptr_t)json;
	char where[NETWORK_TEXT_BYTES], nearest[SUGGEST_TEXT_BYTES] = "";
	for (void *key = json_object_iter(object); key && !*nearest; key = json_object_iter_next(object, key)) {
		struct suggest suggest;
		suggest_init(&suggest, json_object_iter_key(key));
		suggest_offer_list(&suggest, names);
		suggest_text(&suggest, nearest);
	}
	return npumem_error_set(load->error, NPUMEM_INVALID, "%s: no operation; it is one of %s%s",
				network_where(load->network, at, where), names, nearest);
}

static int read_one(struct load *load, const json_t *json, struct network_operation *at)
{
	json_t *object = (json_t *)(uintptr_t)json;
	const struct row *row = NULL;
	char where[2 * NETWORK_TEXT_BYTES], place[NETWORK_TEXT_BYTES];
	struct keys keys = {json, where, load->error, 0};
	at->tensor = at->source = NETWORK_NONE;
	network_where(load->network, at, place);
	if (!json_is_object(json))
		return npumem_error_set(load->error, NPUMEM_INVALID,
					"%s is not an object like {\"run\": \"relu\", …}", place);
	for (void *key = json_object_iter(object); key && !row; key = json_object_iter_next(object, key))
		for (unsigned i = 0; i < N_ROWS && !row; i++)
			if (!strcmp(json_object_iter_key(key), rows[i].name))
				row = &rows[i];
	if (!row)
		return unknown(load, json, at);
	at->kind = (enum network_kind)(row - rows + 1);
	const char *subject = json_string_value(json_object_get(json, row->name));
	snprintf(where, sizeof(where), "%s, %s%s%.63s", place, row->name, subject ? " " : "",
		 subject ? subject : "");
	if (at->part && !row->groups)
		return npumem_error_set(load->error, NPUMEM_INVALID,
					"%s: a parallel group has write, fill, copy, run and read only", where);
	int status = 0;
	if (row->keys) {
		char own[32];
		snprintf(own, sizeof(own), "%s name comment", row->name);
		status = keys_check(&keys, row->keys, own);
	}
	if (!status)
		status = keys_string(&keys, "name", &at->name);
	return status ? status : row->read(load, &keys, at);
}

int operation_read(struct load *load, const json_t *json, struct network_operation *at)
{
	const json_t *group = json_object_get(json, "parallel");
	char where[NETWORK_TEXT_BYTES];
	struct keys keys = {json, network_where(load->network, at, where), load->error, 0};
	int status;
	if (!group)
		return read_one(load, json, at);
	status = keys_check(&keys, "parallel comment name", "");
	if (!status && !json_array_size(group))
		status = keys_expected(&keys, "parallel", "a list of operations");
	if (!status && json_array_size(group) > OPERATION_GROUP_MAX)
		return npumem_error_set(load->error, NPUMEM_INVALID, "%s: a group of %zu; %d operations fit one",
					where, json_array_size(group), OPERATION_GROUP_MAX);
	for (size_t i = 0; i < json_array_size(group) && !status; i++) {
		struct network_operation one = {.place = at->place, .part = (unsigned)i + 1, .line = at->line};
		status = read_one(load, json_array_get(group, i), &one);
	}
	return status;
}
