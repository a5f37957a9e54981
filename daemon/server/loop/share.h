/* Threads that help the one that runs a large kernel.
 * They are as many as the processors that workers.h has slots for, but one, and help only while slots are free: a
 * task of anybody comes first, at the next end of a part. Between two kernels they look for the next for a moment
 * before they sleep, as waking up takes as long as a small kernel. */
#ifndef SERVER_SHARE_H
#define SERVER_SHARE_H

#include "daemon/device/operations/kernel.h"
#include "daemon/server/loop/workers.h"

enum { SHARE_THREADS_MAX = 63 };

/* What is shared now. */
struct share_work {
	void (*work)(void *arg, unsigned number);
	void *arg;
	const struct limits_user *user;
	unsigned n_helped;	/* under the lock */
	atomic_uint n_inside;	/* helpers that call it; rises under the lock only */
	atomic_ullong saved_ns; /* processor time of helpers that have left */
};

struct share {
	const struct workers *workers;
	unsigned threads_max;
	uv_mutex_t lock; /* of what follows */
	uv_cond_t offered, left;
	struct share_work *now; /* NULL: nothing, or no more of it */
	atomic_ullong n_offered;
	atomic_uint n_looking; /* helpers that are awake, and would take what is offered next */
	unsigned n_threads;
	bool is_closing;
	/* What helpers have saved of late, less what they were waited for. Below zero, as beside a busy neighbour
	 * that keeps them from their processors, nothing is shared for a while, twice as long each time. */
	int64_t saved_ns;
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
