/* Which requests run at this moment: records at the end of a page. They are for the next process when this one
 * dies, so nobody waits until they are synced: after a loss of power nothing is known of them.
 *
 * The holder of a slot fills and clears it on any one thread. */
#ifndef STORE_RUNS_H
#define STORE_RUNS_H

#include <pthread.h>

#include "daemon/store/format.h"

struct opening;
struct store;

struct runs {
	void *page; /* a mapping of its own, as those of tables may move */
	struct store_run *records;
	pthread_mutex_t lock;	       /* of the next two */
	uint16_t free[STORE_RUNS_MAX]; /* slots, n_free of them */
	uint32_t n_free;
	struct store_found_run found[STORE_RUNS_MAX];
	uint32_t n_found;
};

/* Finds what ran when the last process ended, and clears it with writes_forget_found. 0 or -errno. */
int runs_open(const struct opening *opening);
void runs_close(struct store *store);
void runs_forget_found(struct store *store);

#endif
