/* With `durable`: the log of all changes of the state, in the order in which they were made. The disk always has a
 * beginning of the log. So a loss of power leaves the same as a kill at an earlier moment, and recovery treats
 * both alike.
 *
 * The process works on private copies of the files. A change is copied into a buffer when it is made, on any
 * thread. A round appends the buffer to the log in the journal's file, with a checksum, and waits for the disk:
 * one sync for all changes until then. A long round goes in pieces of whole units, each shorter than the log,
 * which are written like rounds of their own. After that, and never before, the change goes to its place in the
 * files, which the disk may take at any time. When the log is full, the files are synced, and the log begins
 * anew. It also begins anew before changes of a few bytes in many pages make that sync long. */
#ifndef STORE_LOG_H
#define STORE_LOG_H

#include "daemon/store/internal.h"
#include "daemon/store/log/siphash.h"

struct opening;

enum {
	LOG_BYTES = 16 << 20,	   /* of the file, from FORMAT_RECORDS_OFF on; more if one unit needs it */
	LOG_ROUND = 1 << 20,	   /* in the buffer: a round begins even if no client waits for it */
	LOG_BACKLOG = 2 << 20,	   /* above it small changes are left to threads that may wait */
	LOG_AHEAD = 1 << 20,	   /* changes in their places before the disk begins to take them */
	LOG_PAGE_SHARE = 1 << 10,  /* at least, of its user's share, that a change takes for each new page */
	LOG_APART = 4 << 20,	   /* of changed pages, beyond the changes, before the log begins anew */
	LOG_BUFFER = 256 << 20,	   /* addresses; pages are taken when they are used */
	LOG_KEEPS_PAGES = 8 << 20, /* of a buffer */
};

/* Before anything is mapped: writes the log's changes into the files and empties it. 0 or -errno with its line. */
int log_replay(struct opening *opening);
/* From here on all changes go through the log: replaces the mappings by private copies. 0 or -errno. */
int log_begin(struct store *store, const struct store_options *options);
/* Syncs the files and empties the log: all its changes are in the files already. */
int log_empty(struct store *store);
void log_deinit(struct store *store);

/* Bytes [off, off + bytes) of a file have changed: adds a unit of one change. Recovery finds a unit whole or not
 * at all. */
void log_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes);
/* The same for the file's mapped bytes [from, to), in several units, between which other threads may add. */
void log_add_all(struct store *store, unsigned file, uint64_t from, uint64_t to);
/* A unit of several changes: no other thread adds any between begin and end. */
void log_unit_begin(struct store *store, uint64_t bytes);
void log_unit_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes);
void log_unit_end(struct store *store);

/* Makes the log large enough for a piece of so many bytes. 0; -errno. */
int log_reserve(struct store *store, uint64_t bytes);

/* Size of a change of so many bytes, in a buffer and in the log. */
static inline uint64_t log_change_bytes(uint64_t bytes)
{
	return sizeof(struct format_change) + ((bytes + 7) & ~UINT64_C(7));
}

/* The checksum of a round. The disk may take only a part of a round; behind that part are elements from before the
 * log began anew. A client can have chosen both those elements and the round's own. Of a linear checksum, as a
 * CRC, it could choose them so that the mixture has the sum of the round, even if the CRC had a secret start. So
 * the key is the round's number, which no client knows. A round of another length has another sum. */
static inline uint64_t log_sum(const struct format_log *head)
{
	return siphash((const uint64_t[]){head->seq, head->magic}, head + 1, head->bytes - sizeof(*head));
}

/* Of log.changed. */
static inline size_t log_changed_words(const struct store *store)
{
	return store->maps[FORMAT_MEMORY].bytes / FORMAT_PAGE_BYTES / 64 + 1;
}

static inline bool log_is_on(const struct log *log)
{
	return log->buffers[0].at;
}

#endif
