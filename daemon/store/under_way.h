/* What is under way at this moment, for the next process when this one dies.
 *
 * Writes to local memory: records of their own in the journal, each made valid by its last store, as what they are
 * for takes 100 ns and a checksummed change would double that. A record is taken when its write begins, on the
 * thread that makes it: what waits for a thread takes none.
 *
 * Requests that run: nobody waits until their records are synced; after a loss of power nothing is known of them.
 * The holder of a record fills and clears it on any one thread. */
#ifndef STORE_UNDER_WAY_H
#define STORE_UNDER_WAY_H

struct opening;
struct store;

/* Finds what was under way when the last process ended; the report's n_writes and n_runs, and is_stale where the
 * record of a write is damaged. 0, -ENOMEM or what the mapping said. */
int under_way_open(const struct opening *opening);
void under_way_close(struct store *store);

/* Frees what was found. */
void under_way_forget_found(struct store *store);

#endif
