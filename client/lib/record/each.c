/* A record as text, request by request. Of data it has the size only. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/json/json.h"
#include "client/lib/messages/request.h"
#include "client/lib/record/record.h"

static int no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process for an entry");
}

/* The bytes of a message of this type as a member; nothing where they are none. */
static void put_message(FILE *out, const char *name, const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
			size_t n)
{
	ProtobufCMessage *message = n ? protobuf_c_message_unpack(type, NULL, n, bytes) : NULL;
	if (!message)
		return;
	fprintf(out, ",\"%s\":{", name);
	json_members(out, message, false, JSON_SIZES);
	fputc('}', out);
	protobuf_c_message_free_unpacked(message, NULL);
}

/* The request from its parts. */
static bool put_request(FILE *out, Npumem__V1__RecordEntry *const *parts, size_t n_parts)
{
	size_t n = 0, at = 0;
	for (size_t i = 0; i < n_parts; i++)
		n += parts[i]->request.len;
	uint8_t *bytes = malloc(n ? n : 1);
	if (!bytes)
		return false;
	for (size_t i = 0; i < n_parts; i++) {
		if (parts[i]->request.len)
			memcpy(bytes + at, parts[i]->request.data, parts[i]->request.len);
		at += parts[i]->request.len;
	}
	put_message(out, "request", &npumem__v1__request__descriptor, bytes, n);
	free(bytes);
	return true;
}

/* `parts`: with the entry, which is the last. */
static bool put_entry(FILE *out, Npumem__V1__RecordEntry *const *parts, size_t n_parts)
{
	Npumem__V1__RecordEntry entry = *parts[n_parts - 1];
	entry.request.len = entry.answer.len = 0;
	bool is_end = n_parts == 1 && !parts[0]->request.len && !entry.shared && !entry.before;
	fprintf(out, "{\"ended\":%s", is_end ? "true" : "false");
	json_members(out, &entry.base, true, JSON_SIZES);
	if (!put_request(out, parts, n_parts))
		return false;
	put_message(out, "answer", &npumem__v1__response__descriptor, parts[n_parts - 1]->answer.data,
		    parts[n_parts - 1]->answer.len);
	fputc('}', out);
	return true;
}

static int pass_entry(Npumem__V1__RecordEntry *const *parts, size_t n_parts,
		      int (*each)(void *ctx, const char *json), void *ctx, struct npumem_error *error)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	if (!out)
		return no_memory(error);
	bool whole = put_entry(out, parts, n_parts);
	int status = fclose(out) || !whole ? no_memory(error) : each(ctx, text);
	free(text);
	return status;
}

int npumem_replay_each(const struct npumem_replay *replay, int (*each)(void *ctx, const char *json), void *ctx,
		       struct npumem_error *error)
{
	const struct record_file *file = replay_file(replay);
	size_t n_parts = 0;
	int status = 0;
	request_clear(error);
	for (size_t i = 0; i < file->n_entries && !status; i++) {
		n_parts++;
		if (file->entries[i]->part)
			continue;
		status = pass_entry(file->entries + i + 1 - n_parts, n_parts, each, ctx, error);
		n_parts = 0;
	}
	return status;
}
