/* One piece of work is shared at a time; a second one meanwhile runs on its own thread alone. Threads are made
 * when they are first needed. */
#include "daemon/server/loop/share.h"

#include <sched.h>
#include <time.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	/* Polls for the next kernel, whose checks come before it; after several vain polls it skips some. */
	LOOK_NS = 50 * NS_PER_US,
	AWAY_NS = 20 * NS_PER_US,
	MISSES_MAX = 4,
	RESTS = 64,
	WAIT_NS = 50 * NS_PER_US, /* for a helper's last part before sleeping */
	/* Fewer products are done before a sleeping helper has woken up, or one that is awake has come. */
	PRODUCTS_ASLEEP = 1 << 25,
	PRODUCTS_AWAKE = 1 << 21,
	SAVED_MOST_NS = 2 * NS_PER_MS,
	LOST_MOST_NS = 100 * NS_PER_US,
	ALONE_LEAST_NS = 500 * NS_PER_MS,
};
#define ALONE_MOST_NS (UINT64_C(16000) * NS_PER_MS)

/* The work that this thread helps with, and its number among the helpers. */
static _Thread_local const struct share_work *helped;
static _Thread_local unsigned helped_number;

/* Processor time of this thread. */
static uint64_t worked_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* ---- the helpers ---- */

static void help(struct share *share, struct share_work *now)
{
	uint64_t before;

	helped = now;
	helped_number = ++now->n_helped;
	atomic_fetch_add(&now->n_inside, 1);
	uv_mutex_unlock(&share->lock);
	before = worked_ns();
	now->work(now->arg, helped_number);
	atomic_fetch_add(&now->saved_ns, worked_ns() - before);
	helped = NULL;
	uv_mutex_lock(&share->lock);
	if (atomic_fetch_sub(&now->n_inside, 1) == 1)
		uv_cond_signal(&share->left);
}

/* A helper's statistics of its polls for offers. */
struct looks {
	unsigned misses, rests;
};

/* Polls; returns whether there is an offer. Yields in between, and stops if another thread has used the
 * processor. */
static bool look_for_offer(const struct share *share, uint64_t last)
{
	uint64_t now = uv_hrtime(), end = now + LOOK_NS, before;

	do {
		before = now;
		sched_yield();
		now = uv_hrtime();
		if (atomic_load(&share->n_offered) != last)
			return true;
	} while (now < end && now - before < AWAY_NS);
	return false;
}

static void wait_awake(struct share *share, struct looks *looks, uint64_t last)
{
	bool came;

	if (looks->rests) {
		looks->rests--;
		return;
	}
	atomic_fetch_add(&share->n_looking, 1);
	uv_mutex_unlock(&share->lock);
	came = look_for_offer(share, last);
	uv_mutex_lock(&share->lock);
	atomic_fetch_sub(&share->n_looking, 1);
	looks->misses = came ? 0 : looks->misses + 1;
	if (looks->misses < MISSES_MAX)
		return;
	looks->misses = 0;
	looks->rests = RESTS;
}

static bool may_help(const struct share *share)
{
	return workers_have_room(share->workers, share->now->user, share->now->n_helped + 1);
}

static void run_helper(void *arg)
{
	struct share *share = arg;
	struct looks looks = {0, 0};
	uint64_t last = 0;

	bool has_helped = false;

	uv_mutex_lock(&share->lock);
	while (!share->is_closing) {
		if (share->now && share->n_offered != last && may_help(share)) {
			last = share->n_offered;
			help(share, share->now);
			has_helped = true;
		} else {
			last = share->n_offered;
			if (has_helped)
				wait_awake(share, &looks, last);
			has_helped = false;
			if (share->n_offered == last && !share->is_closing)
				uv_cond_wait(&share->offered, &share->lock);
		}
	}
	uv_mutex_unlock(&share->lock);
}

/* ---- the thread that is helped ---- */

static void make_thread(struct share *share)
{
	if (share->n_threads == share->threads_max)
		return;
	if (uv_thread_create(&share->threads[share->n_threads], run_helper, share))
		share->threads_max = share->n_threads; /* the process may have no more */
	else
		share->n_threads++;
}

static bool is_worth_it(const struct share *share, int64_t products)
{
	return products >= PRODUCTS_ASLEEP || (products >= PRODUCTS_AWAKE && atomic_load(&share->n_looking));
}

static bool offer(struct share *share, struct share_work *now, bool is_large)
{
	bool is_offered;

	uv_mutex_lock(&share->lock);
	is_offered = !share->now && share->threads_max && uv_hrtime() >= share->alone_until_ns;
	if (is_offered) {
		if (is_large)
			make_thread(share);
		share->now = now;
		share->n_offered++;
		if (is_large)
			uv_cond_broadcast(&share->offered);
	}
	uv_mutex_unlock(&share->lock);
	return is_offered;
}

static void wait_for_helpers(struct share *share, struct share_work *now)
{
	uint64_t began = uv_hrtime();

	uv_mutex_lock(&share->lock);
	share->now = NULL;
	uv_mutex_unlock(&share->lock);
	while (atomic_load(&now->n_inside) && uv_hrtime() < began + WAIT_NS)
		;
	uv_mutex_lock(&share->lock);
	while (now->n_inside)
		uv_cond_wait(&share->left, &share->lock);
	uv_mutex_unlock(&share->lock);
}

/* `lost_ns`: waits for helpers, and time without a processor, which a helper may have had instead: its work
 * meanwhile saves nothing. One delay is forgiven if the helpers have saved more before. */
static void learn(struct share *share, uint64_t saved_ns, uint64_t lost_ns)
{
	uv_mutex_lock(&share->lock);
	share->saved_ns += (int64_t)saved_ns - (int64_t)lost_ns;
	if (share->saved_ns < -LOST_MOST_NS) {
		share->saved_ns = 0;
		share->alone_ns = share->alone_ns ? 2 * share->alone_ns : ALONE_LEAST_NS;
		if (share->alone_ns > ALONE_MOST_NS)
			share->alone_ns = ALONE_MOST_NS;
		share->alone_until_ns = uv_hrtime() + share->alone_ns;
	} else if (share->saved_ns > SAVED_MOST_NS) {
		share->saved_ns = SAVED_MOST_NS;
		share->alone_ns = 0;
	}
	uv_mutex_unlock(&share->lock);
}

static void share_out(void *ctx, int64_t products, void (*work)(void *arg, unsigned number), void *arg)
{
	struct share *share = ctx;
	struct share_work now = {.work = work, .arg = arg, .user = workers_user()};
	bool is_shared = is_worth_it(share, products) && workers_have_room(share->workers, now.user, 1);
	uint64_t began = is_shared ? uv_hrtime() : 0, worked = is_shared ? worked_ns() : 0;

	is_shared = is_shared && offer(share, &now, products >= PRODUCTS_ASLEEP);
	work(arg, 0);
	if (!is_shared)
		return;
	worked = worked_ns() - worked;
	wait_for_helpers(share, &now);
	learn(share, now.saved_ns, uv_hrtime() - began - worked);
}

static bool is_wanted_elsewhere(void *ctx)
{
	const struct share *share = ctx;

	return helped && !workers_have_room(share->workers, helped->user, helped_number);
}

struct kernel_crew share_crew(struct share *share)
{
	return (struct kernel_crew){share_out, is_wanted_elsewhere, share, share->threads_max + 1};
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
