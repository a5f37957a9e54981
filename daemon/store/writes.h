/* Which writes to local memory are under way: records of their own in the journal, each made valid by its last
 * store, as what they are for takes 100 ns and a checksummed change would double that. A record is taken when its
 * write begins, on the thread that makes it: what waits for a thread takes none. */
#ifndef STORE_WRITES_H
#define STORE_WRITES_H

#include <pthread.h>

#include "daemon/store/format.h"

struct opening;
struct store;

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

/* Finds what was under way; the report's n_writes, and is_stale where a record is damaged. 0 or -ENOMEM. */
int writes_open(const struct opening *opening);
void writes_close(struct store *store);

/* Frees what was found. */
void writes_forget_found(struct store *store);

#endif
