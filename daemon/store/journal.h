/* The redo journal: changes of cells are written here first, become valid with one store, and only then reach
 * their cells. It holds one transaction, for as long as store_commit takes. With `durable` it lies in the process's
 * own memory, and the cells go to the log (log.h). */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include "daemon/store/mapping.h"
#include "daemon/store/store.h"

struct opening;

struct journal {
	struct mapping records; /* the file from FORMAT_RECORDS_OFF on */
	uint64_t end; /* of the transaction that is being put together; 0 before its first change */
	uint64_t n_records;
	uint64_t seq; /* its number */
};

/* Room for so many more changes. 0 or -errno. */
int journal_reserve(struct store *store, uint32_t n_changes);

/* Applies what is valid, tells of what is damaged, and leaves the journal empty. 0 or -errno. */
int journal_replay(const struct opening *opening);

#endif
