/* Which writes to local memory are under way: records of their own in the journal, each made valid by its last
 * store, as what they are for takes 100 ns and a checksummed change would double that. A record is taken when its
 * write begins, on the thread that makes it: what waits for a thread takes none. */
#ifndef STORE_WRITES_H
#define STORE_WRITES_H

struct opening;
struct store;

/* Finds what was under way; the report's n_writes, and is_stale where a record is damaged. 0 or -ENOMEM. */
int writes_open(const struct opening *opening);
void writes_close(struct store *store);

/* Frees what was found. */
void writes_forget_found(struct store *store);

#endif
