/* Threads that help the one that runs a kernel. There is one less than workers.h has slots, and they help only
 * while slots are free: at the next end of a part any task comes first. A helper that has helped polls for the
 * next kernel for a moment before it sleeps, as a wake-up takes as long as a small kernel. So a list of small
 * kernels wakes it once. */
#ifndef SERVER_SHARE_H
#define SERVER_SHARE_H

#include "daemon/device/operations/kernel.h"
#include "daemon/server/loop/workers.h"

enum { SHARE_THREADS_MAX = 63 };

struct share {
	const struct workers *workers;
	unsigned threads_max;
	atomic_bool is_taken; /* by the thread that shares, or decides whether to: what follows is its own */
	unsigned n_threads;
	uint64_t alone_ns, alone_end_ns; /* work that nobody helped with as helpers slept, and its latest end */
	/* Time that helpers have saved lately, less the time of waits for them. If it falls below a bound, as
	 * beside a busy neighbour that keeps them from their processors, nothing is shared for a while: twice as
	 * long where it follows the last rest within as long as that was. */
	int64_t saved_ns;
	uint64_t rest_until_ns, rest_ns;

	/* The work that is shared now: while `offer` is odd, and until no helper is inside. */
	void (*work)(void *arg, unsigned number);
	void *arg;
	_Atomic(const struct limits_user *) user;
	atomic_uint offer; /* rises as work is offered, and as there is no more of it */
	atomic_uint n_helpers, n_inside;
	atomic_ullong helped_ns; /* processor time of helpers */

	atomic_bool is_crowded; /* another process has kept a helper from its processor */
	atomic_uint n_polling;	/* helpers that would take the next offer at once */
	uv_mutex_t lock;	/* for sleeping, and of is_closing */
	uv_cond_t offered, left;
	atomic_bool is_awaited; /* the thread that shares sleeps until no helper is inside */
	bool is_closing;
	uv_thread_t threads[SHARE_THREADS_MAX];
	bool is_open;
};

/* `workers` is open, and outlives it. Without host memory or threads there are no helpers. */
void share_open(struct share *share, const struct workers *workers);
/* When no kernel runs. */
void share_close(struct share *share);
struct kernel_crew share_crew(struct share *share);

#endif
