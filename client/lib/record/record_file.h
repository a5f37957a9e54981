/* A record as a file has it: read whole, and checked before anything is done with it. Whatever the bytes are, it
 * is refused with a reason that names the entry, or all of it can be relied on. */
#ifndef CLIENT_LIB_RECORD_FILE_H
#define CLIENT_LIB_RECORD_FILE_H

#include "client/lib/connection/memory.h"
#include "client/lib/record/record.h"
#include "proto/npumem.pb-c.h"

struct record_file {
	const struct memory *memory;
	ProtobufCAllocator allocator; /* of the entries; points to this struct, which must stay where it is */
	bool starved;
	struct npumem_info info;
	/* Without header and end. Parts come right before the entry that they are of; the transfers among them are
	 * regions (region.h), a write's complete and in order. */
	Npumem__V1__RecordEntry **entries;
	size_t n_entries, capacity;
	uint64_t hash, snapshot; /* snapshot: RecordEnd's */
	bool has_tensors;	 /* when it begins */
	uint32_t *local;
	size_t n_local;
};

/* 0; INVALID, RESOURCE_EXHAUSTED: then there is nothing to deinit. `name` is what the reasons begin with. */
int record_file_parse(const struct memory *memory, const char *name, const uint8_t *bytes, size_t n,
		      struct record_file *file, struct npumem_error *error);
int record_file_read(const struct memory *memory, const char *path, struct record_file *file,
		     struct npumem_error *error);
void record_file_deinit(struct record_file *file);

#endif
