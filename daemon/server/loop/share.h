/* Threads that help the one that runs a large kernel. There is one less than workers.h has slots, and they help
 * only while slots are free: at the next end of a part any task comes first. Between two kernels they poll for the
 * next one for a moment before they sleep, as a wake-up takes as long as a small kernel. */
#ifndef SERVER_SHARE_H
#define SERVER_SHARE_H

#include "daemon/device/operations/kernel.h"
#include "daemon/server/loop/workers.h"

enum { SHARE_THREADS_MAX = 63 };

/* The work that is shared now. */
struct share_work {
	void (*work)(void *arg, unsigned number);
	void *arg;
	const struct limits_user *user;
	unsigned n_helped;	/* under the lock */
	atomic_uint n_inside;	/* helpers inside work(); rises under the lock only */
	atomic_ullong saved_ns; /* processor time of helpers that have left */
};

struct share {
	const struct workers *workers;
	unsigned threads_max;
	uv_mutex_t lock; /* of the members below */
	uv_cond_t offered, left;
	struct share_work *now; /* NULL: nothing, or no more of it */
	atomic_ullong n_offered;
	atomic_uint n_looking; /* helpers that are awake, and would take the next offer */
	unsigned n_threads;
	bool is_closing;
	/* Time that helpers have saved lately, less the time of waits for them. If it falls below a bound, as
	 * beside a busy neighbour that keeps them from their processors, nothing is shared for a while, twice as
	 * long each time. */
	int64_t saved_ns;
	uint64_t alone_until_ns, alone_ns;
	uv_thread_t threads[SHARE_THREADS_MAX];
	bool is_open;
};

/* `workers` is open, and outlives it. Without host memory or threads there are no helpers. */
void share_open(struct share *share, const struct workers *workers);
/* When no kernel runs. */
void share_close(struct share *share);
struct kernel_crew share_crew(struct share *share);

#endif
