/* One piece of work is shared at a time; who comes meanwhile works alone. Threads are made when they are first of
 * use, and sleep between. */
#include "daemon/server/loop/share.h"

#include <time.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	LATE_NS = 20 * NS_PER_US, /* that one may be kept waiting, */
	LATE_PART = 4,		  /* or such a part of the time that it worked itself */
	ALONE_LEAST_NS = 500 * NS_PER_MS,
};
#define ALONE_MOST_NS (UINT64_C(16000) * NS_PER_MS)

static _Thread_local bool helps;

static void help(struct share *share, struct share_work *now)
{
	now->n_inside++;
	uv_mutex_unlock(&share->lock);
	now->work(now->arg);
	uv_mutex_lock(&share->lock);
	if (!--now->n_inside)
		uv_cond_signal(&share->left);
}

static void run_helper(void *arg)
{
	struct share *share = arg;
	uint64_t last = 0;

	helps = true;
	uv_mutex_lock(&share->lock);
	while (!share->is_closing) {
		if (share->now && share->n_offered != last && workers_have_room(share->workers)) {
			last = share->n_offered;
			help(share, share->now);
		} else {
			uv_cond_wait(&share->offered, &share->lock);
		}
	}
	uv_mutex_unlock(&share->lock);
}

static void make_thread(struct share *share)
{
	if (share->n_threads == share->threads_max)
		return;
	if (uv_thread_create(&share->threads[share->n_threads], run_helper, share))
		share->threads_max = share->n_threads; /* the process may have no more */
	else
		share->n_threads++;
}

static bool offer(struct share *share, struct share_work *now)
{
	bool is_offered;

	if (!workers_have_room(share->workers))
		return false;
	uv_mutex_lock(&share->lock);
	is_offered = !share->now && share->threads_max && uv_hrtime() >= share->alone_until_ns;
	if (is_offered) {
		make_thread(share);
		share->now = now;
		share->n_offered++;
		uv_cond_broadcast(&share->offered);
	}
	uv_mutex_unlock(&share->lock);
	return is_offered;
}

/* Processor time of this thread. */
static uint64_t worked_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

static void wait_for_helpers(struct share *share, struct share_work *now)
{
	uv_mutex_lock(&share->lock);
	share->now = NULL;
	while (now->n_inside)
		uv_cond_wait(&share->left, &share->lock);
	uv_mutex_unlock(&share->lock);
}

/* What somebody was kept from a processor for, who shared: this thread, or a helper that it waited for. */
static void learn(struct share *share, uint64_t took_ns, uint64_t worked)
{
	uint64_t late_ns = worked / LATE_PART;

	uv_mutex_lock(&share->lock);
	if (took_ns > worked + (late_ns > LATE_NS ? late_ns : LATE_NS)) {
		share->alone_ns = share->alone_ns ? 2 * share->alone_ns : ALONE_LEAST_NS;
		if (share->alone_ns > ALONE_MOST_NS)
			share->alone_ns = ALONE_MOST_NS;
		share->alone_until_ns = uv_hrtime() + share->alone_ns;
	} else {
		share->alone_ns /= 2;
	}
	uv_mutex_unlock(&share->lock);
}

static void share_out(void *ctx, void (*work)(void *arg), void *arg)
{
	struct share *share = ctx;
	struct share_work now = {.work = work, .arg = arg};
	uint64_t began, worked;

	if (!offer(share, &now)) {
		work(arg);
		return;
	}
	began = uv_hrtime();
	worked = worked_ns();
	work(arg);
	worked = worked_ns() - worked;
	wait_for_helpers(share, &now);
	learn(share, uv_hrtime() - began, worked);
}

static bool is_wanted_elsewhere(void *ctx)
{
	const struct share *share = ctx;

	return helps && !workers_have_room(share->workers);
}

struct kernel_crew share_crew(struct share *share)
{
	return (struct kernel_crew){share_out, is_wanted_elsewhere, share};
}

void share_open(struct share *share, const struct workers *workers)
{
	unsigned others = workers->n_slots - 1;

	*share = (struct share){.workers = workers,
				.threads_max = others < SHARE_THREADS_MAX ? others : SHARE_THREADS_MAX};
	if (uv_available_parallelism() == 1)
		share->threads_max = 0;
	if (uv_mutex_init(&share->lock))
		return;
	if (uv_cond_init(&share->offered)) {
		uv_mutex_destroy(&share->lock);
		return;
	}
	if (uv_cond_init(&share->left)) {
		uv_cond_destroy(&share->offered);
		uv_mutex_destroy(&share->lock);
		return;
	}
	share->is_open = true;
}

void share_close(struct share *share)
{
	if (!share->is_open)
		return;
	uv_mutex_lock(&share->lock);
	share->is_closing = true;
	uv_cond_broadcast(&share->offered);
	uv_mutex_unlock(&share->lock);
	for (unsigned i = 0; i < share->n_threads; i++)
		uv_thread_join(&share->threads[i]);
	uv_cond_destroy(&share->left);
	uv_cond_destroy(&share->offered);
	uv_mutex_destroy(&share->lock);
	share->is_open = false;
}
