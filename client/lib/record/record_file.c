/* Entry after entry, each checked against what came before it. */
#include "client/lib/record/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/lib/messages/payload.h"
#include "client/lib/messages/reply.h"
#include "proto/frame.h"

struct reader {
	struct record_file *file;
	const char *name;
	struct npumem_error *error;
	size_t at;	  /* byte of the file */
	size_t whole_at;  /* behind the last entry that is no part */
	bool begun, done; /* had its header, its end */
	uint64_t number;  /* of the last entry that is no part */
	uint64_t left;	  /* bytes of a write's transfer that are still to come */
	size_t request;	  /* bytes of the present request so far */
	bool in_parts;
};

static int refuse(struct reader *reader, const char *why)
{
	return npumem_error_set(reader->error, NPUMEM_INVALID, "%.200s: entry %zu, at byte %zu: %s", reader->name,
				reader->file->n_entries + reader->begun, reader->at, why);
}

static int no_memory(struct npumem_error *error)
{
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED, "no memory in this process for the recording");
}

static void *entry_alloc(void *ctx, size_t bytes)
{
	struct record_file *file = ctx;
	void *memory = memory_alloc(file->memory, bytes);
	file->starved |= !memory;
	return memory;
}

static void entry_free(void *ctx, void *memory)
{
	memory_free(((struct record_file *)ctx)->memory, memory);
}

static int add_entry(struct record_file *file, Npumem__V1__RecordEntry *entry)
{
	if (file->n_entries == file->capacity) {
		size_t room = file->capacity ? 2 * file->capacity : 64;
		void *grown = file->memory->resize(file->memory->ctx, file->entries, room * sizeof(entry));
		if (!grown)
			return -1;
		file->entries = grown;
		file->capacity = room;
	}
	file->entries[file->n_entries++] = entry;
	return 0;
}

static const char *check_transfer(struct reader *reader, const Npumem__V1__RecordTransfer *transfer)
{
	struct region region;
	uint64_t n = transfer->data.len;
	if (!region_of(transfer, &region))
		return "its extents or strides are out of range";
	if (transfer->is_read)
		return n || reader->left ? "data of a write are missing" : NULL;
	if (!reader->left)
		reader->left = region.bytes;
	if (transfer->first > region.bytes || reader->left != region.bytes - transfer->first)
		return "data of a write are missing";
	if (!n || n > reader->left || n % region.element_bytes || transfer->first % region.element_bytes)
		return "data of a write that are not whole elements of it";
	reader->left -= n;
	return NULL;
}

static const char *check_entry(struct reader *reader, const Npumem__V1__RecordEntry *entry)
{
	if (entry->header || entry->end)
		return "a header or an end that is not at its place";
	if (entry->number != reader->number + 1)
		return "entries before it are missing";
	if (entry->transfer && (!entry->part || entry->request.len || reader->request))
		return "a transfer that is not a part of its own";
	if (reader->left && !entry->transfer)
		return "data of a write are missing";
	if (entry->before && (entry->part || entry->request.len || entry->shared || reader->in_parts))
		return "something of before that is a request as well";
	if (entry->request.len > FRAME_BYTES_MAX - reader->request)
		return "a request that is longer than a frame";
	return entry->transfer ? check_transfer(reader, entry->transfer) : NULL;
}

static int take_entry(struct reader *reader, Npumem__V1__RecordEntry *entry)
{
	const char *why = check_entry(reader, entry);
	int status = 0;
	if (why)
		status = refuse(reader, why);
	else if (add_entry(reader->file, entry))
		status = no_memory(reader->error);
	if (status) {
		npumem__v1__record_entry__free_unpacked(entry, &reader->file->allocator);
		return status;
	}
	reader->request = entry->part ? reader->request + entry->request.len : 0;
	reader->in_parts = entry->part;
	reader->number += !entry->part;
	reader->file->has_tensors |= entry->before && entry->n_handles;
	return 0;
}

static int take_end(struct reader *reader, const Npumem__V1__RecordEnd *end)
{
	struct record_file *file = reader->file;
	if (end->entries != file->n_entries || reader->in_parts)
		return refuse(reader, "entries before the end are missing");
	file->hash = end->hash;
	file->snapshot = end->snapshot;
	file->local = memory_array(file->memory, end->n_local, sizeof(*file->local));
	if (!file->local)
		return no_memory(reader->error);
	if (end->n_local)
		memcpy(file->local, end->local, end->n_local * sizeof(*file->local));
	file->n_local = end->n_local;
	reader->done = true;
	return 0;
}

static int read_entry(struct reader *reader, const uint8_t *bytes, size_t n)
{
	struct record_file *file = reader->file;
	Npumem__V1__RecordEntry *entry = npumem__v1__record_entry__unpack(&file->allocator, n, bytes);
	int status = 0;
	if (!entry)
		return file->starved ? no_memory(reader->error) : refuse(reader, "garbage");
	if (reader->begun && !entry->end)
		return take_entry(reader, entry);
	if (reader->begun)
		status = take_end(reader, entry->end);
	else if (!entry->header || reply_info(entry->header, &file->info))
		status = refuse(reader, "it does not tell what was recorded");
	reader->begun = true;
	npumem__v1__record_entry__free_unpacked(entry, &file->allocator);
	return status;
}

/* The file ends before its recording did, as the recorder was killed: what is whole stays, parts without the entry
 * that they are of do not. The snapshot's checksum is in the end, which is not there. */
static void cut(struct reader *reader)
{
	struct record_file *file = reader->file;
	while (file->n_entries && file->entries[file->n_entries - 1]->part)
		npumem__v1__record_entry__free_unpacked(file->entries[--file->n_entries], &file->allocator);
	file->cut_at = reader->whole_at;
}

static int read_entries(struct reader *reader, const uint8_t *bytes, size_t n)
{
	int status = 0;
	while (!status && !reader->done) {
		size_t header, message;
		switch (frame_parse(bytes + reader->at, n - reader->at, FRAME_BYTES_MAX, &header, &message)) {
		case FRAME_COMPLETE:
			break;
		case FRAME_MORE:
			if (!reader->begun)
				return refuse(reader, "it is cut off before anything was recorded");
			cut(reader);
			return 0;
		default:
			return refuse(reader, "garbage");
		}
		status = read_entry(reader, bytes + reader->at + header, message);
		if (!status)
			reader->at += header + message;
		if (!status && !reader->in_parts)
			reader->whole_at = reader->at;
	}
	return status || reader->at == n ? status : refuse(reader, "there is something behind its end");
}

int record_file_parse(const struct memory *memory, const char *name, const uint8_t *bytes, size_t n,
		      struct record_file *file, struct npumem_error *error)
{
	struct reader reader = {.file = file, .name = name, .error = error, .at = RECORD_MAGIC_BYTES};
	*file = (struct record_file){.memory = memory, .allocator = {entry_alloc, entry_free, file}};
	if (n < RECORD_MAGIC_BYTES || memcmp(bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES - 2))
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: this is not a recording", name);
	if (memcmp(bytes, RECORD_MAGIC, RECORD_MAGIC_BYTES))
		return npumem_error_set(
			error, NPUMEM_INVALID, "%.200s: a recording of version %c, and not 2", name,
			bytes[RECORD_MAGIC_BYTES - 2] >= '0' && bytes[RECORD_MAGIC_BYTES - 2] <= '9'
				? bytes[RECORD_MAGIC_BYTES - 2]
				: '?');
	int status = read_entries(&reader, bytes, n);
	if (status)
		record_file_deinit(file);
	return status;
}

/* The whole file; the caller frees. NULL without memory, or where it cannot be read (errno). */
static uint8_t *read_whole(const struct memory *memory, FILE *in, size_t *n)
{
	size_t room = 1 << 16, got = 1;
	uint8_t *bytes = memory_alloc(memory, room);
	for (*n = 0; bytes && got; *n += got) {
		if (*n == room) {
			uint8_t *grown = memory->resize(memory->ctx, bytes, room *= 2);
			if (!grown)
				break;
			bytes = grown;
		}
		got = fread(bytes + *n, 1, room - *n, in);
	}
	if (bytes && !got && !ferror(in))
		return bytes;
	memory_free(memory, bytes);
	return NULL;
}

int record_file_read(const struct memory *memory, const char *path, struct record_file *file,
		     struct npumem_error *error)
{
	FILE *in = fopen(path, "rb");
	size_t n;
	if (!in)
		return npumem_error_set(error, NPUMEM_INVALID, "%.200s: %s", path, strerror(errno));
	uint8_t *bytes = read_whole(memory, in, &n);
	bool failed = ferror(in);
	fclose(in);
	if (!bytes)
		return failed ? npumem_error_set(error, NPUMEM_INVALID, "%.200s: it cannot be read", path)
			      : no_memory(error);
	int status = record_file_parse(memory, path, bytes, n, file, error);
	memory_free(memory, bytes);
	return status;
}

void record_file_deinit(struct record_file *file)
{
	for (size_t i = 0; i < file->n_entries; i++)
		npumem__v1__record_entry__free_unpacked(file->entries[i], &file->allocator);
	memory_free(file->memory, file->entries);
	memory_free(file->memory, file->local);
	file->entries = NULL;
	file->local = NULL;
	file->n_entries = file->n_local = 0;
}
