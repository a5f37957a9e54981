/* The redo journal: changes of cells are written here first, become valid with one store, and only then reach
 * their cells. It holds one transaction, for as long as store_commit takes. With `durable` it lies in the process's
 * own memory, and the cells go to the log (log.h). */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

struct opening;

/* Applies valid transactions, reports damage, and empties the journal. 0 or -errno. */
int journal_replay(const struct opening *opening);

#endif
