/* With `durable`: the log of all changes of the state, in the order in which they were made. What the disk has is
 * a beginning of the log. So a loss of power leaves what a kill at an earlier moment leaves, and recovery need not
 * tell the two apart.
 *
 * The process works on private copies of the files. A change is copied into a buffer when it is made, on any
 * thread. A round writes what the buffer holds behind the log in the journal's file, with a checksum, and waits
 * for the disk: one sync for all changes until then. After that, and never before, the change goes to its place in
 * the files, which the disk may take at any time. Where the log has no room left the files are synced, and it
 * begins anew. */
#ifndef STORE_LOG_H
#define STORE_LOG_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/store/mapping.h"
#include "daemon/store/shares.h"
#include "daemon/store/store.h"

struct opening;

enum {
	LOG_BYTES = 16 << 20,	   /* of the file, from FORMAT_RECORDS_OFF on; more where one round needs it */
	LOG_ROUND = 1 << 20,	   /* in the buffer: a round begins also where nobody waits for it */
	LOG_BACKLOG = 2 << 20,	   /* beyond it small changes are left to threads that may wait */
	LOG_AHEAD = 1 << 20,	   /* changes in their places, after which the disk begins to take them */
	LOG_BUFFER = 256 << 20,	   /* addresses, of which pages are taken as they are used */
	LOG_KEEPS_PAGES = 8 << 20, /* of a buffer */
};

struct log_buffer {
	uint8_t *at; /* NULL: there is no log */
	uint64_t used;
	struct shares shares; /* of what is in it */
};

struct log {
	pthread_mutex_t lock; /* of what is up to `n_expected` */
	pthread_cond_t has_room, has_some;
	struct log_buffer buffers[2];
	unsigned filling;
	bool is_attached, is_stopping; /* a thread runs store_write_out */
	pthread_t owner;	       /* never waits for it */
	const void *(*user)(void);     /* whose change the calling thread makes; NULL: all are one user's */
	_Atomic uint64_t appended, synced;
	uint64_t wanted; /* somebody waits for what is up to here */
	uint64_t round;	 /* the number of the one that the buffer is filled for: from 1 on */
	/* Clients that wait for it, that the round before answered, and that may wait before it begins:
	 * store_wait. */
	unsigned n_waiting, n_answered, n_expected;
	/* Of the round's thread. */
	uint64_t sync_ns;     /* that the last round took */
	uint64_t tail, bytes; /* in the file: where the next round begins; the log's length */
	uint64_t home_bytes;  /* in their places since the disk was asked last to take them */
	uint64_t seq;
	bool is_dirty[5]; /* files with changes that are not synced */
	uint8_t *notes;	  /* of writes under way, as in the log: put into the file when the log begins anew */
	uint64_t notes_end;
};

/* Before anything is mapped: writes what the log has into the files and empties it. 0 or -errno with its line. */
int log_replay(struct opening *opening);
/* From here on all changes go through the log: turns what is mapped into private copies. 0 or -errno. */
int log_begin(struct store *store, const struct store_options *options);
/* Nothing is in the log that is not in the synced files, and it is empty. */
int log_empty(struct store *store);
void log_deinit(struct store *store);

/* Bytes [off, off + bytes) of a file have changed: a unit of one, which is found whole or not at all. */
void log_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes);
/* The file's mapped bytes [from, to), in pieces between which others come. */
void log_add_all(struct store *store, unsigned file, uint64_t from, uint64_t to);
/* A unit of several: between these two nobody else adds any. */
void log_unit_begin(struct store *store, uint64_t bytes);
void log_unit_add(struct store *store, unsigned file, uint64_t off, const void *data, uint64_t bytes);
void log_unit_end(struct store *store);

static inline bool log_is_on(const struct log *log)
{
	return log->buffers[0].at;
}

#endif
