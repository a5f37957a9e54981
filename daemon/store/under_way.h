/* Notes of running writes and requests, for the next process if this one dies.
 *
 * Writes to local memory: records of their own in the journal, each made valid by its last store. A small write
 * takes 100 ns, and a checksummed change would double that. A record is taken when its write begins, on the
 * write's thread: a write that waits for a thread has none.
 *
 * Requests that run: their records are not synced, so after a loss of power nothing is known of them. The holder
 * of a record fills and clears it on any one thread. */
#ifndef STORE_UNDER_WAY_H
#define STORE_UNDER_WAY_H

struct opening;
struct store;

/* Finds the notes of the last process. Sets the report's n_writes and n_runs, and is_stale if the record of a
 * write is damaged. 0, -ENOMEM or the mapping's error. */
int under_way_open(const struct opening *opening);
void under_way_close(struct store *store);

/* Frees the found records. */
void under_way_forget_found(struct store *store);

#endif
