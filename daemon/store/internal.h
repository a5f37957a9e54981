/* The parts of an open state, for the store's own files. The functions of a part are in the header of its name. */
#ifndef STORE_INTERNAL_H
#define STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/store/files/format.h"
#include "daemon/store/files/mapping.h"
#include "daemon/store/log/shares.h"

struct manifest;

struct journal {
	struct mapping records; /* the file from FORMAT_RECORDS_OFF on */
	uint64_t end;		/* of the transaction that is being built; 0 before its first change */
	uint64_t n_records;
	uint64_t seq; /* its number */
};

struct log_buffer {
	uint8_t *at; /* NULL: there is no log */
	uint64_t used;
	uint64_t piece; /* where its last piece begins; a piece has whole units and is written like a round */
	uint64_t apart; /* of its changes, as log.apart */
	struct shares shares; /* of its changes */
};

struct log {
	pthread_mutex_t lock; /* of the members down to `n_expected` */
	pthread_cond_t has_room, has_some;
	struct log_buffer buffers[2];
	unsigned filling;
	bool is_short;		       /* a request waits for a share of the next buffer */
	uint64_t unit;		       /* where the current unit begins in the buffer */
	bool is_attached, is_stopping; /* a thread runs store_write_out */
	pthread_t owner;	       /* the thread that never waits for the disk */
	const void *(*user)(void);     /* the user of the calling thread's changes; NULL: all are one user's */
	const void *owners_user;       /* the user of the owner's changes */
	uint64_t *changed; /* a bit for each page of local memory's file that changed since the log began */
	_Atomic uint64_t appended, synced;
	uint64_t wanted; /* clients wait for the changes up to here */
	uint64_t round;	 /* the number of the round for which the buffer is filled: from 1 on */
	/* Numbers of clients that wait for it, that the round before has answered, and that are expected to wait
	 * before it begins (store_wait). */
	unsigned n_waiting, n_answered, n_expected;
	/* For the thread that writes rounds. */
	uint64_t sync_ns;	/* the time of the last round */
	uint64_t tail;		/* in the file: where the next piece begins */
	_Atomic uint64_t bytes; /* in the file: the log's length */
	uint64_t home_bytes;	/* stored in their places since calls_start_writing */
	uint64_t apart;		/* since the log began: bytes of changed pages beyond those of the changes */
	uint64_t seq;
	bool is_dirty[5]; /* files with changes that are not synced */
	uint8_t *notes;	  /* notes of writes, as in the log: stored in the file when the log begins anew */
	uint64_t notes_end;
};

struct writes {
	struct store_write *records;
	pthread_mutex_t lock; /* of the free records */
	uint32_t n_fresh;     /* records from here on were never taken by this process */
	uint32_t free;	      /* the first free one of the others, +1; `handle` of each has the next one */
	void *own;	      /* with a log, the memory of the records; NULL: they are in the file */
	struct store_found_write *found;
	uint32_t n_found;
	uint16_t *found_at; /* indices of the found ones, and of the damaged ones */
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

/* A file as it was. Its mappings outlive the image, as another thread may still use them. */
struct image_file {
	uint64_t bytes; /* a multiple of FORMAT_PAGE_BYTES */
	uint64_t room;	/* size of the mappings */
	_Atomic uint8_t *states;
	uint8_t *saved;		/* pages, at their own offsets */
	_Atomic uint64_t below; /* all pages before it were read */
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
	_Atomic int failed; /* -errno of the disk: nothing may be acknowledged any more */
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
