/* What an open state consists of, for the store's own files. What is done with a part of it is in the header of
 * the part's name. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/store/format.h"
#include "daemon/store/mapping.h"
#include "daemon/store/shares.h"

struct manifest;

struct journal {
	struct mapping records; /* the file from FORMAT_RECORDS_OFF on */
	uint64_t end;		/* of the transaction that is being put together; 0 before its first change */
	uint64_t n_records;
	uint64_t seq; /* its number */
};

struct log_buffer {
	uint8_t *at; /* NULL: there is no log */
	uint64_t used;
	uint64_t piece;	      /* where its last piece begins: each is a round's record of whole units in the log */
	struct shares shares; /* of what is in it */
};

struct log {
	pthread_mutex_t lock; /* of what is up to `n_expected` */
	pthread_cond_t has_room, has_some;
	struct log_buffer buffers[2];
	unsigned filling;
	bool is_short;		       /* somebody waits for a share of the next buffer */
	uint64_t unit;		       /* where the one that is being added begins in the buffer */
	bool is_attached, is_stopping; /* a thread runs store_write_out */
	pthread_t owner;	       /* never waits for it */
	const void *(*user)(void);     /* whose change the calling thread makes; NULL: all are one user's */
	const void *owners_user;       /* whose the owner makes */
	_Atomic uint64_t appended, synced;
	uint64_t wanted; /* somebody waits for what is up to here */
	uint64_t round;	 /* the number of the one that the buffer is filled for: from 1 on */
	/* Clients that wait for it, that the round before answered, and that may wait before it begins:
	 * store_wait. */
	unsigned n_waiting, n_answered, n_expected;
	/* Of the round's thread. */
	uint64_t sync_ns;	/* that the last round took */
	uint64_t tail;		/* in the file: where the next piece begins */
	_Atomic uint64_t bytes; /* in the file: the log's length */
	uint64_t home_bytes;	/* in their places since the disk was asked last to take them */
	uint64_t seq;
	bool is_dirty[5]; /* files with changes that are not synced */
	uint8_t *notes;	  /* of writes under way, as in the log: put into the file when the log begins anew */
	uint64_t notes_end;
};

struct writes {
	struct store_write *records;
	pthread_mutex_t lock; /* of which records are free */
	uint32_t n_fresh;     /* records from here on were never taken by this process */
	uint32_t free; /* the first of those that were and are free, +1; each has the next one's in `handle` */
	void *own;     /* with a log, the memory that the records are in; NULL: they are the file's */
	struct store_found_write *found;
	uint32_t n_found;
	uint16_t *found_at; /* where they are, and the damaged ones */
	uint32_t n_found_at;
};

struct runs {
	void *page; /* a mapping of its own, as those of tables may move */
	struct store_run *records;
	pthread_mutex_t lock;	       /* of the next two */
	uint16_t free[STORE_RUNS_MAX]; /* slots, n_free of them */
	uint32_t n_free;
	struct store_found_run found[STORE_RUNS_MAX];
	uint32_t n_found;
};

/* A file as it was. Its mapping outlives the image: another thread may be about to look whether there is one. */
struct image_file {
	uint64_t bytes; /* a multiple of FORMAT_PAGE_BYTES */
	uint64_t room;	/* that the mappings are for */
	_Atomic uint8_t *states;
	uint8_t *saved;		/* pages, at their own offsets */
	_Atomic uint64_t below; /* all before it was told */
};

struct image {
	_Atomic bool is_on;
	_Atomic uint64_t n_saved;
	struct image_file files[FORMAT_FILES];
	unsigned at;  /* in the order of files */
	uint64_t off; /* in that file */
	struct manifest *manifest;
	uint8_t *piece;
	bool knows_zero;
	uint32_t zero_crc; /* of a whole part */
};

struct store {
	const struct heap *heap;
	const struct store_hooks *hooks;
	_Atomic int failed; /* what the disk answered: nothing may be acknowledged any more */
	int fds[FORMAT_FILES];
	struct mapping maps[FORMAT_FILES]; /* the journal's up to its records */
	struct mapping home[FORMAT_FILES]; /* with a log, the files themselves; `maps` are private copies */
	uint32_t n_cells[STORE_TABLES], cell_bytes[STORE_TABLES];
	uint32_t epoch;
	struct journal journal;
	struct log log;
	struct writes writes;
	struct runs runs;
	struct image image;
};

/* A file's first page, in the file itself. */
static inline struct format_page *store_page(const struct store *store, enum format_file file)
{
	return (struct format_page *)(void *)(store->home[file].at ? store->home[file].at : store->maps[file].at);
}

#endif
