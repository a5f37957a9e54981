/* Tensors come with answers and go with requests to free them, with the end of their session where they have no
 * name, and by nothing else. Views have no bytes, and are never entered. */
#include "client/ctl/core/report/report.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/ctl/core/output/output.h"

enum { N_KINDS = 4, KEY_BYTES = 160 };
static const char *const kinds[N_KINDS] = {"data", "dummy", "padding", "empty"};

struct memory {
	json_t *steps;
	json_t *held;  /* by handle: what the answer told, with its session */
	json_t *names; /* "uid:name" to handle */
	json_int_t bytes[N_KINDS];
	bool changed;
};

static const char *key_of(char key[KEY_BYTES], json_int_t uid, const char *name)
{
	if (strchr(name, ':'))
		snprintf(key, KEY_BYTES, "%.150s", name);
	else
		snprintf(key, KEY_BYTES, "%lld:%.120s", (long long)uid, name);
	return key;
}

static void count(struct memory *memory, const json_t *tensor, int sign)
{
	const json_t *blocks = json_object_get(json_object_get(tensor, "place"), "blocks");
	for (unsigned i = 0; i < N_KINDS; i++)
		memory->bytes[i] += sign * jsons_number(blocks, kinds[i]);
	memory->changed = true;
}

static void enter(struct memory *memory, const json_t *tensor, json_int_t session)
{
	char key[KEY_BYTES];
	const char *handle = jsons_string(tensor, "handle"), *name = jsons_string(tensor, "name");
	if (!*handle || json_object_get(memory->held, handle) ||
	    strspn(jsons_string(tensor, "base_handle"), "0") < strlen(jsons_string(tensor, "base_handle")))
		return;
	json_object_set_new(memory->held, handle, json_pack("{s:O, s:I}", "told", tensor, "session", session));
	if (*name)
		json_object_set_new(memory->names, key_of(key, jsons_number(tensor, "uid"), name),
				    json_string(handle));
	count(memory, tensor, 1);
}

static void leave(struct memory *memory, const char *handle)
{
	json_t *one = json_object_get(memory->held, handle);
	if (!one)
		return;
	count(memory, json_object_get(one, "told"), -1);
	json_object_del(memory->held, handle);
}

static void free_all(struct memory *memory, const json_t *entry)
{
	const json_t *ref;
	size_t i;
	char key[KEY_BYTES], handle[KEY_BYTES];
	json_array_foreach(json_object_get(json_object_get(json_object_get(entry, "request"), "free"), "tensors"),
			   i, ref)
	{
		const char *named = jsons_string(
			memory->names, key_of(key, jsons_number(entry, "uid"), jsons_string(ref, "name")));
		snprintf(handle, sizeof(handle), "%s",
			 *jsons_string(ref, "handle") ? jsons_string(ref, "handle") : named);
		leave(memory, handle);
	}
}

static void end_session(struct memory *memory, json_int_t session)
{
	const char *handle;
	json_t *one;
	void *next;
	json_object_foreach_safe(memory->held, next, handle, one)
	{
		if (jsons_number(one, "session") != session || *jsons_string(json_object_get(one, "told"), "name"))
			continue;
		count(memory, json_object_get(one, "told"), -1);
		json_object_del(memory->held, handle);
	}
}

static void step(struct memory *memory, json_int_t at)
{
	if (memory->changed)
		json_array_append_new(memory->steps,
				      json_pack("{s:I, s:I, s:I, s:I, s:I}", "at", at, kinds[0], memory->bytes[0],
						kinds[1], memory->bytes[1], kinds[2], memory->bytes[2], kinds[3],
						memory->bytes[3]));
	memory->changed = false;
}

static void apply(struct memory *memory, const json_t *entry)
{
	const json_t *answer = json_object_get(entry, "answer"), *tensor;
	bool is_before = json_is_true(json_object_get(entry, "before"));
	size_t i;
	if (*jsons_string(entry, "status"))
		return;
	if (json_is_true(json_object_get(entry, "ended")))
		end_session(memory, jsons_number(entry, "session"));
	json_array_foreach(json_object_get(json_object_get(answer, is_before ? "list" : "allocated"), "tensors"),
			   i, tensor) enter(memory, tensor, jsons_number(is_before ? tensor : entry, "session"));
	free_all(memory, entry);
	if (!is_before)
		step(memory, jsons_number(entry, "answered_ns"));
}

json_t *memory_of(const json_t *entries)
{
	struct memory memory = {.steps = json_array(), .held = json_object(), .names = json_object()};
	const json_t *entry;
	size_t i;
	json_array_foreach(entries, i, entry) apply(&memory, entry);
	return memory.steps;
}
