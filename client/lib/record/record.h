/* What writing and replaying a record share. */
#ifndef LIB_RECORD_RECORD_H
#define LIB_RECORD_RECORD_H

#include <npumem/client.h>
#include <npumem/record.h>

#include "client/lib/connection/memory.h"
#include "proto/npumem.pb-c.h"

#define RECORD_MAGIC "npumem record 2\n"
enum { RECORD_MAGIC_BYTES = 16 };
/* The file that identifies a snapshot. */
#define RECORD_MANIFEST "manifest"

/* What the device holds, in numbers. */
struct record_sums {
	uint64_t hash;	 /* of all tensors' data */
	uint32_t *local; /* CRC-32 of each NPU's local memory */
	size_t n_local;
};

/* A result, to be released. 0 or a status. */
int record_sums(struct npumem *npumem, const struct record_sums **sums, struct npumem_error *error);

/* record_file.c. A record as a file has it: read whole, and checked before anything is done with it. Whatever the
 * bytes are, it is refused with a reason that names the entry, or all of it can be relied on. A file that has no
 * end is read up to its last whole entry. */

struct record_file {
	const struct memory *memory;
	ProtobufCAllocator allocator; /* of the entries; points to this struct, which must stay where it is */
	bool starved;
	struct npumem_info info;
	/* Without header and end. Parts come right before the entry that they are of; the transfers among them are
	 * regions (region.c), a write's complete and in order. */
	Npumem__V1__RecordEntry **entries;
	size_t n_entries, capacity;
	uint64_t hash, snapshot; /* snapshot: RecordEnd's */
	uint64_t cut_at;	 /* bytes up to the last whole entry; 0: the recording has its end */
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

/* replay.c. A replay with memory of one's own choice. */

/* As npumem_replay_open; `memory` outlives it. */
int replay_new(const struct memory *memory, const char *path, struct npumem_replay **out,
	       struct npumem_error *error);

struct record_file;
const struct record_file *replay_file(const struct npumem_replay *replay);

/* replay_peer.c. What a record's sessions, handles and segments have become in a replay. */

struct replay_segment {
	uint64_t recorded; /* its number in the record */
	const struct npumem_segment *segment;
	struct replay_segment *next;
};

struct replay_peer {
	uint64_t session; /* in the record */
	struct npumem *npumem;
	struct replay_segment *segments;
	struct replay_peer *next;
};

/* Takes over `npumem`, also where there is no memory: NULL then. */
struct replay_peer *replay_peer_new(const struct memory *memory, uint64_t session, struct npumem *npumem);
/* Where it is in the list, or the list's end, which is NULL. */
struct replay_peer **replay_peer_find(struct replay_peer **list, uint64_t session);
/* Takes it out, closes its connection and frees. */
void replay_peer_close(struct replay_peer **at, const struct memory *memory);

/* Shares as much as was shared. 0, or as npumem_segment_create. */
int replay_peer_share(struct replay_peer *peer, const struct memory *memory, const Npumem__V1__Shared *shared,
		      struct npumem_error *error);
/* NULL: none of that number. */
const struct npumem_segment *replay_peer_segment(const struct replay_peer *peer, uint64_t recorded);
/* The daemon has given it up. */
void replay_peer_unshare(struct replay_peer *peer, const struct memory *memory, uint64_t recorded);

/* Handles: open addressing, 0 is free. */
struct replay_handles {
	uint64_t *from, *to;
	size_t n_slots; /* a power of two, at least twice as many as all handles */
};

/* For n handles. 0; -1: no memory. */
int replay_handles_init(struct replay_handles *handles, const struct memory *memory, size_t n);
void replay_handles_deinit(struct replay_handles *handles, const struct memory *memory);
bool replay_handles_know(const struct replay_handles *handles, uint64_t handle);
void replay_handles_add(struct replay_handles *handles, uint64_t from, uint64_t to);
/* Puts the replay's handles and segments into a request; those that it does not know become ones that no daemon
 * gives. */
void replay_handles_map(const struct replay_handles *handles, const struct replay_peer *peer,
			ProtobufCMessage *message);

#endif
