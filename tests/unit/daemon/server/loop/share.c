/* Helpers take parts beside the one who shares, leave when they are wanted elsewhere, and are waited for. */
#include "daemon/server/loop/share.h"

#include <unistd.h>

#include "tests/support/hrtime.h"
#include "tests/support/test.h"

enum { SLOTS = 3, PARTS = 100000, LARGE = 1 << 30, SMALL = 80000, MOMENT_NS = 400000 }; /* SMALL: 40 us */

struct bench {
	uv_loop_t loop;
	struct fair_queue queue;
	struct workers workers;
	struct share share;
	struct kernel_crew crew;
};

struct parts {
	struct kernel_call call;
	atomic_int next, n_done, n_threads, n_inside;
	int wanted_threads;	       /* the first part waits until so many are there */
	unsigned late_us;	       /* of a helper that is late */
	uv_thread_t owner;	       /* who shares */
	atomic_int numbers[SLOTS + 1]; /* how often work was called with each; the last: a wrong one */
	uint8_t took[PARTS];
};

static void bench_open(struct bench *bench)
{
	ck_assert_int_eq(uv_loop_init(&bench->loop), 0);
	ck_assert_int_eq(workers_open(&bench->workers, &bench->loop, &bench->queue, &heap_libc, SLOTS), 0);
	share_open(&bench->share, &bench->workers);
	/* Also on a machine with one processor. */
	bench->share.threads_max = SLOTS - 1;
	bench->crew = share_crew(&bench->share);
}

static void bench_close(struct bench *bench)
{
	share_close(&bench->share);
	workers_close(&bench->workers);
	uv_run(&bench->loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&bench->loop), 0);
}

FIXTURE_OBJECT(struct bench, bench, bench_open(&bench), bench_close(&bench))

static bool is_owner(const struct parts *parts)
{
	uv_thread_t self = uv_thread_self();
	return uv_thread_equal(&self, &parts->owner);
}

static void take_parts(void *arg, unsigned number)
{
	struct parts *parts = arg;
	int at;
	/* Assertions are the main thread's. */
	atomic_fetch_add(&parts->numbers[number < SLOTS && !number == is_owner(parts) ? number : SLOTS], 1);
	atomic_fetch_add(&parts->n_threads, 1);
	atomic_fetch_add(&parts->n_inside, 1);
	while (atomic_load(&parts->n_threads) < parts->wanted_threads)
		usleep(100);
	while ((at = atomic_fetch_add(&parts->next, 1)) < PARTS) {
		parts->took[at]++;
		atomic_fetch_add(&parts->n_done, 1);
		if (!kernel_part_done(&parts->call, 1))
			break;
	}
	atomic_fetch_sub(&parts->n_inside, 1);
}

static void parts_init(struct parts *parts, int wanted_threads)
{
	*parts = (struct parts){.wanted_threads = wanted_threads, .owner = uv_thread_self()};
	parts->call.crew = &bench.crew;
}

TEST(each_part_once, .is_unbounded = true)
{
	static struct parts parts;
	for (int wanted = 1; wanted <= SLOTS; wanted++) {
		bench.share.rest_until_ns = 0;
		parts_init(&parts, wanted);
		kernel_share(&parts.call, LARGE, take_parts, &parts);
		ck_assert_int_eq(parts.n_inside, 0);
		ck_assert_int_eq(parts.n_done, PARTS);
		for (int i = 0; i < PARTS; i++)
			ck_assert_int_eq(parts.took[i], 1);
		ck_assert_int_ge(parts.n_threads, wanted);
		for (int i = 0; i < SLOTS; i++)
			ck_assert_int_le(parts.numbers[i], 1);
		ck_assert_int_eq(parts.numbers[SLOTS], 0);
	}
}

/* Where all slots are taken, and where somebody waits for one. */
TEST(nobody_helps_where_others_wait, .is_unbounded = true)
{
	static struct parts parts;
	for (int i = 0; i < 2; i++) {
		atomic_store(&bench.workers.n_running, i ? SLOTS : 1);
		atomic_store(&bench.workers.n_waiting, !i);
		parts_init(&parts, 1);
		kernel_share(&parts.call, LARGE, take_parts, &parts);
		ck_assert_int_eq(parts.n_done, PARTS);
		ck_assert_int_eq(parts.n_threads, 1);
	}
	atomic_store(&bench.workers.n_running, 0);
}

static void take_parts_until_wanted(void *arg, unsigned number)
{
	struct parts *parts = arg;
	(void)number;
	atomic_fetch_add(&parts->n_inside, 1);
	if (is_owner(parts)) {
		while (atomic_load(&parts->n_inside) < 2)
			usleep(100);
		/* Somebody comes: the helper leaves, and this thread stays. */
		atomic_store(&bench.workers.n_waiting, 1);
		while (atomic_load(&parts->n_inside) > 1)
			usleep(100);
		ck_assert(kernel_part_done(&parts->call, 1));
	} else {
		while (kernel_part_done(&parts->call, 1))
			usleep(100);
	}
	atomic_fetch_sub(&parts->n_inside, 1);
}

TEST(helpers_leave_for_others, .is_unbounded = true)
{
	static struct parts parts;
	bench.share.threads_max = 1;
	parts_init(&parts, 0);
	kernel_share(&parts.call, LARGE, take_parts_until_wanted, &parts);
	ck_assert_int_eq(parts.n_inside, 0);
	atomic_store(&bench.workers.n_waiting, 0);
}

static void be_late(void *arg, unsigned number)
{
	struct parts *parts = arg;
	(void)number;
	atomic_fetch_add(&parts->n_inside, 1);
	while (is_owner(parts) && atomic_load(&parts->n_inside) < parts->wanted_threads)
		usleep(100);
	if (!is_owner(parts))
		usleep(parts->late_us);
}

/* What is too small to wake a helper for is shared with one that is awake. */
TEST(what_is_small_wakes_nobody, .is_unbounded = true)
{
	static struct parts parts;
	parts_init(&parts, 1);
	kernel_share(&parts.call, SMALL, take_parts, &parts);
	ck_assert_int_eq(parts.n_threads, 1);
	ck_assert_uint_eq(bench.share.n_threads, 0);
	/* As if one looked. */
	atomic_store(&bench.share.n_polling, 1);
	kernel_share(&parts.call, SMALL, take_parts, &parts);
	ck_assert_uint_eq(bench.share.offer, 2);
	ck_assert_uint_eq(bench.share.n_threads, 0);
	atomic_store(&bench.share.n_polling, 0);
}

/* As in a list. One that comes after a pause does not follow. */
TEST(small_ones_that_follow_each_other_wake, .is_unbounded = true)
{
	static struct parts parts;
	hrtime_stop();
	for (int i = 0; i < 3; i++) {
		parts_init(&parts, 1);
		kernel_share(&parts.call, SMALL, take_parts, &parts);
		ck_assert_uint_eq(bench.share.n_threads, i == 2);
		if (!i)
			hrtime_skip(MOMENT_NS);
	}
	hrtime_run();
}

/* One that has helped polls for what comes next: for a moment, which lasts here until it has come. */
TEST(who_helped_stays_awake_for_a_moment, .is_unbounded = true)
{
	static struct parts parts;
	bench.share.threads_max = 1;
	hrtime_stop();
	for (int i = 0; i < 3; i++) {
		bench.share.rest_until_ns = 0;
		parts_init(&parts, 2);
		kernel_share(&parts.call, i ? SMALL : LARGE, take_parts, &parts);
		ck_assert_int_eq(parts.n_threads, 2);
		while (!atomic_load(&bench.share.n_polling))
			usleep(100);
	}
	hrtime_run();
}

/* As between two parts of a list, of which the next waits for its thread. */
TEST(a_task_that_waits_ends_no_poll, .is_unbounded = true)
{
	static struct parts parts;
	bench.share.threads_max = 1;
	hrtime_stop();
	parts_init(&parts, 2);
	kernel_share(&parts.call, LARGE, take_parts, &parts);
	atomic_store(&bench.workers.n_waiting, 1);
	while (!atomic_load(&bench.share.n_polling))
		usleep(100);
	usleep(10000);
	ck_assert_uint_eq(bench.share.n_polling, 1);
	atomic_store(&bench.workers.n_waiting, 0);
	hrtime_run();
}

/* Once late by a moment is forgiven. */
TEST(who_saves_more_is_asked_again, .is_unbounded = true)
{
	static struct parts parts;
	bench.share.threads_max = 1;
	/* A busy machine may make a moment a millisecond, which is not forgiven. */
	for (int i = 0; i < 100 && (!i || bench.share.rest_until_ns); i++) {
		bench.share.saved_ns = 1000000000;
		bench.share.rest_until_ns = 0;
		parts_init(&parts, 2);
		parts.late_us = 200;
		kernel_share(&parts.call, LARGE, be_late, &parts);
	}
	ck_assert_uint_eq(bench.share.rest_until_ns, 0);
	ck_assert_int_lt(bench.share.saved_ns, 1000000000);
}

/* The next rest is longer where it follows soon, up to a bound: the neighbour may have gone. */
TEST(rests_grow_while_they_follow_each_other, .is_unbounded = true)
{
	static struct parts parts;
	const uint64_t rests_ms[] = {50, 100, 200, 400, 800, 800, 50};
	hrtime_stop();
	for (int i = 0; i < 7; i++) {
		bench.share.saved_ns = -1000000000;
		parts_init(&parts, 1);
		kernel_share(&parts.call, LARGE, take_parts, &parts);
		ck_assert_uint_eq(bench.share.rest_ns, rests_ms[i] * 1000000);
		hrtime_skip(i == 5 ? 2 * bench.share.rest_ns : bench.share.rest_ns);
	}
	hrtime_run();
}

/* Who waits longer for a helper than that helps works alone for a while. */
TEST(a_late_helper_is_not_asked_again_soon, .is_unbounded = true)
{
	static struct parts parts;
	bench.share.saved_ns = 1000000000;
	parts_init(&parts, 2);
	parts.late_us = 20000;
	kernel_share(&parts.call, LARGE, be_late, &parts);
	ck_assert_uint_gt(bench.share.rest_until_ns, 0);
	bench.share.rest_until_ns = UINT64_MAX;
	parts_init(&parts, 1);
	kernel_share(&parts.call, LARGE, take_parts, &parts);
	ck_assert_int_eq(parts.n_threads, 1);
}
