/* The redo journal: changes of cells are written here first, become valid with one store, and only then reach
 * their cells. Without `durable` it holds one transaction, for as long as store_commit takes; with it all since
 * the last store_flush. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "daemon/store/mapping.h"
#include "daemon/store/store.h"

struct opening;

struct journal {
	struct mapping records; /* the file from FORMAT_RECORDS_OFF on */
	uint64_t begin, end; /* of the transaction that is being put together; end is 0 before its first change */
	uint64_t n_records;
	uint64_t seq;			/* its number */
	bool has_changed[STORE_TABLES]; /* by what is committed and not yet in the cells */
};

/* Room for so many more changes. 0 or -errno. */
int journal_reserve(struct store *store, uint32_t n_changes);

/* Applies what is valid, tells of what is damaged, and leaves the journal empty. 0 or -errno. */
int journal_replay(const struct opening *opening);

/* With `durable`: makes what is committed reach the disk, and then the cells there. */
int journal_flush(struct store *store);

#endif
