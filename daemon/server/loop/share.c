/* One piece of work is shared at a time; a second one meanwhile runs on its own thread alone. Threads that are
 * awake hand it over by atomic variables alone, as a lock that two threads want at once costs as much as a small
 * kernel. Threads are made when they are first needed. */
#include "daemon/server/loop/share.h"

#include <sched.h>
#include <time.h>

enum {
	NS_PER_US = 1000,
	NS_PER_MS = 1000000,
	NS_PER_S = 1000000000,
	STEPS_PER_NS = 2, /* op_cost's unit */
	/* Polls for the next kernel, whose checks come before it; after several vain polls it skips some. */
	POLL_NS = 100 * NS_PER_US,
	AWAY_NS = 20 * NS_PER_US,
	BESIDE_NS = NS_PER_MS, /* the loop, or a client, does not keep a helper from its processor for so long */
	MISSES_MAX = 4,
	RESTS = 64,
	WAIT_NS = 50 * NS_PER_US, /* for a helper's last part before sleeping */
	/* Less work is done before sleeping helpers have come. Kernels of a list, which follow each other, count
	 * together. */
	WAKE_LEAST_NS = 50 * NS_PER_US,
	FOLLOWS_NS = 200 * NS_PER_US,
	SAVED_MOST_NS = 2 * NS_PER_MS,
	LOST_MOST_NS = 100 * NS_PER_US,
	REST_LEAST_NS = 50 * NS_PER_MS,
	REST_MOST_NS = 800 * NS_PER_MS, /* an attempt beside a busy neighbour costs some milliseconds */
};

/* This thread's number among the helpers of the work that it is inside of; 0: of none. */
static _Thread_local unsigned helped_number;

/* Processor time of this thread. */
static uint64_t worked_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

/* ---- the helpers ---- */

static bool is_offered(const struct share *share, unsigned last)
{
	unsigned offer = atomic_load(&share->offer);

	return offer % 2 && offer != last;
}

static bool have_room(const struct share *share, unsigned n)
{
	return workers_have_room(share->workers, atomic_load(&share->user), n);
}

static void run_part(struct share *share, unsigned number)
{
	uint64_t began = uv_hrtime(), worked = worked_ns();

	helped_number = number;
	share->work(share->arg, number);
	helped_number = 0;
	worked = worked_ns() - worked;
	atomic_fetch_add(&share->helped_ns, worked);
	if (uv_hrtime() - began > worked + BESIDE_NS)
		atomic_store(&share->is_crowded, true);
}

/* False: the processor is wanted elsewhere. */
static bool help(struct share *share, unsigned offer)
{
	bool has_room = true;
	unsigned number;

	/* The thread that shares ends its offer, and then awaits that nobody is inside: in the other order here.
	 */
	atomic_fetch_add(&share->n_inside, 1);
	if (offer % 2 && atomic_load(&share->offer) == offer) {
		number = atomic_fetch_add(&share->n_helpers, 1) + 1;
		has_room = have_room(share, number);
		if (has_room)
			run_part(share, number);
	}
	if (atomic_fetch_sub(&share->n_inside, 1) == 1 && atomic_load(&share->is_awaited)) {
		uv_mutex_lock(&share->lock);
		uv_cond_signal(&share->left);
		uv_mutex_unlock(&share->lock);
	}
	return has_room;
}

/* Whether there is an offer after `last` in a moment. Yields in between, and stops if another thread has used the
 * processor, or a task wants it. */
static bool poll_for_offer(struct share *share, unsigned last)
{
	uint64_t now = uv_hrtime(), end = now + POLL_NS, before = now;
	bool is_beside_task = false;

	atomic_fetch_add(&share->n_polling, 1);
	while (!is_offered(share, last) && now < end && now - before < AWAY_NS) {
		is_beside_task = atomic_load_explicit(&share->workers->n_running, memory_order_relaxed);
		before = now;
		sched_yield();
		now = uv_hrtime();
	}
	atomic_fetch_sub(&share->n_polling, 1);
	if (is_beside_task && now - before > BESIDE_NS)
		atomic_store(&share->is_crowded, true);
	return is_offered(share, last);
}

/* A helper's statistics of its polls after it has helped. */
struct polls {
	unsigned misses, rests;
};

static bool poll_again(struct share *share, struct polls *polls, unsigned last)
{
	bool came;

	if (polls->rests) {
		polls->rests--;
		return false;
	}
	came = poll_for_offer(share, last);
	polls->misses = came ? 0 : polls->misses + 1;
	if (polls->misses == MISSES_MAX)
		*polls = (struct polls){.rests = RESTS};
	return came;
}

static void run_helper(void *arg)
{
	struct share *share = arg;
	struct polls polls = {0, 0};
	unsigned last = 0;
	bool goes_on;

	uv_mutex_lock(&share->lock);
	while (!share->is_closing) {
		uv_mutex_unlock(&share->lock);
		/* It may have been woken too late for what it was woken for, and early for what follows. */
		goes_on = poll_for_offer(share, last);
		while (goes_on) {
			last = atomic_load(&share->offer);
			goes_on = help(share, last) && poll_again(share, &polls, last);
		}
		uv_mutex_lock(&share->lock);
		if (!is_offered(share, last) && !share->is_closing)
			uv_cond_wait(&share->offered, &share->lock);
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

static void wake(struct share *share)
{
	make_thread(share);
	uv_mutex_lock(&share->lock);
	uv_cond_broadcast(&share->offered);
	uv_mutex_unlock(&share->lock);
}

/* Whether sleeping helpers are to be woken for work of this time, or for what followed each other without them. */
static bool is_worth_waking(struct share *share, uint64_t ns, uint64_t now)
{
	if (now > share->alone_end_ns + FOLLOWS_NS)
		share->alone_ns = 0;
	share->alone_ns += ns;
	share->alone_end_ns = now + ns;
	if (share->alone_ns < WAKE_LEAST_NS)
		return false;
	share->alone_ns = 0;
	return true;
}

static bool offer(struct share *share, uint64_t ns, void (*work)(void *arg, unsigned number), void *arg)
{
	uint64_t now = uv_hrtime();
	bool are_awake = atomic_load(&share->n_polling), wakes;

	if (!share->threads_max || now < share->rest_until_ns)
		return false;
	wakes = (!are_awake || ns >= WAKE_LEAST_NS) && is_worth_waking(share, ns, now);
	if (!are_awake && !wakes)
		return false;
	share->work = work;
	share->arg = arg;
	atomic_store(&share->user, workers_user());
	atomic_store(&share->n_helpers, 0);
	atomic_store(&share->helped_ns, 0);
	atomic_fetch_add(&share->offer, 1);
	if (wakes)
		wake(share);
	return true;
}

static void end_offer(struct share *share)
{
	uint64_t began = uv_hrtime();

	atomic_fetch_add(&share->offer, 1);
	while (atomic_load(&share->n_inside) && uv_hrtime() < began + WAIT_NS)
		;
	if (!atomic_load(&share->n_inside))
		return;
	uv_mutex_lock(&share->lock);
	atomic_store(&share->is_awaited, true);
	while (atomic_load(&share->n_inside))
		uv_cond_wait(&share->left, &share->lock);
	atomic_store(&share->is_awaited, false);
	uv_mutex_unlock(&share->lock);
}

/* `lost_ns`: waits for helpers, and time without a processor, which a helper may have had instead: its work
 * meanwhile saves nothing. One delay is forgiven if the helpers have saved more before. */
static void learn(struct share *share, uint64_t saved_ns, uint64_t lost_ns)
{
	bool is_crowded = atomic_exchange(&share->is_crowded, false);
	uint64_t now = uv_hrtime();

	share->saved_ns += (int64_t)saved_ns - (int64_t)lost_ns;
	if (share->saved_ns > SAVED_MOST_NS)
		share->saved_ns = SAVED_MOST_NS;
	if (!is_crowded && share->saved_ns >= -LOST_MOST_NS)
		return;
	share->saved_ns = 0;
	share->rest_ns = now < share->rest_until_ns + share->rest_ns ? 2 * share->rest_ns : REST_LEAST_NS;
	if (share->rest_ns > REST_MOST_NS)
		share->rest_ns = REST_MOST_NS;
	share->rest_until_ns = now + share->rest_ns;
}

static void share_out(void *ctx, int64_t steps, void (*work)(void *arg, unsigned number), void *arg)
{
	struct share *share = ctx;
	bool is_taken =
		workers_have_room(share->workers, workers_user(), 1) && !atomic_exchange(&share->is_taken, true);
	bool is_shared = is_taken && offer(share, (uint64_t)steps / STEPS_PER_NS, work, arg);
	uint64_t began = is_shared ? uv_hrtime() : 0, worked = is_shared ? worked_ns() : 0;

	if (is_taken && !is_shared)
		atomic_store(&share->is_taken, false);
	work(arg, 0);
	if (!is_shared)
		return;
	worked = worked_ns() - worked;
	end_offer(share);
	learn(share, atomic_load(&share->helped_ns), uv_hrtime() - began - worked);
	atomic_store(&share->is_taken, false);
}

static bool is_wanted_elsewhere(void *ctx)
{
	return helped_number && !have_room(ctx, helped_number);
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
