/* Which writes to local memory are under way: records of their own in the journal, each made valid by its last
 * store, as what they are for takes 100 ns and a checksummed change would double that. The list of free ones is one
 * thread's; a record is whoever's who has it, so that a write may begin on the thread that makes it. */
#ifndef STORE_WRITES_H
#define STORE_WRITES_H

#include "daemon/store/format.h"

struct opening;
struct store;

struct writes {
	struct store_write *records;
	uint32_t n_fresh; /* records from here on were never taken by this process */
	uint32_t free;	  /* the first of those that were and are free, +1; each has the next one's in `handle` */
	uint16_t *ended;  /* with durable: those that end with the next flush */
	uint32_t n_ended;
	struct store_found_write *found;
	uint32_t n_found;
	uint16_t *found_at; /* where they are, and the damaged ones */
	uint32_t n_found_at;
};

/* Finds what was under way; the report's n_writes, and is_stale where a record is damaged. 0 or -ENOMEM. */
int writes_open(const struct opening *opening);
void writes_close(struct store *store);

/* Frees what ended, its bytes being on the disk. */
void writes_forget_ended(struct store *store);

/* Frees what was found. */
void writes_forget_found(struct store *store);

#endif
