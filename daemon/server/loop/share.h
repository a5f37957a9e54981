/* Threads that help the one that runs a large kernel.
 * They are as many as the processors that workers.h has slots for, but one, and help only while slots are free: a
 * task of anybody comes first, at the next end of a part. */
#ifndef SERVER_SHARE_H
#define SERVER_SHARE_H

#include "daemon/device/operations/kernel.h"
#include "daemon/server/loop/workers.h"

enum { SHARE_THREADS_MAX = 63 };

/* What is shared now. */
struct share_work {
	void (*work)(void *arg);
	void *arg;
	unsigned n_inside; /* helpers that call it */
};

struct share {
	const struct workers *workers;
	unsigned threads_max;
	uv_mutex_t lock; /* of what follows */
	uv_cond_t offered, left;
	struct share_work *now; /* NULL: nothing, or no more of it */
	uint64_t n_offered;
	unsigned n_threads;
	bool is_closing;
	/* Where helpers are kept from their processors, as beside a busy neighbour, one waits for them longer than
	 * they help: then nothing is shared for a while, twice as long each time. */
	uint64_t alone_until_ns, alone_ns;
	uv_thread_t threads[SHARE_THREADS_MAX];
	bool is_open;
};

/* `workers` is open, and outlives it. Without host memory or threads nobody helps. */
void share_open(struct share *share, const struct workers *workers);
/* When no kernel runs. */
void share_close(struct share *share);
struct kernel_crew share_crew(struct share *share);

#endif
