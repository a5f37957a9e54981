/* Which requests run at this moment: records at the end of a page. They are for the next process when this one
 * dies, so nobody waits until they are synced: after a loss of power nothing is known of them.
 *
 * The holder of a slot fills and clears it on any one thread. */
#ifndef STORE_RUNS_H
#define STORE_RUNS_H

struct opening;
struct store;

/* Finds what ran when the last process ended, and clears it with writes_forget_found. 0 or -errno. */
int runs_open(const struct opening *opening);
void runs_close(struct store *store);
void runs_forget_found(struct store *store);

#endif
