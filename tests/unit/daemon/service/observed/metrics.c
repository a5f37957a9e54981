#include "tests/unit/daemon/service/world.h"

#include "daemon/service/observed/metrics.h"

FIXTURE_OBJECT(struct world, world, world_init(&world), world_deinit(&world))

TEST(buckets_double)
{
	ck_assert_uint_eq(metrics_bucket(0), 0);
	ck_assert_uint_eq(metrics_bucket(999), 0);
	ck_assert_uint_eq(metrics_bucket(1000), 1);
	ck_assert_uint_eq(metrics_bucket(1999), 1);
	ck_assert_uint_eq(metrics_bucket(2000), 2);
	ck_assert_uint_eq(metrics_bucket(UINT64_C(16777215999)), 24);
	ck_assert_uint_eq(metrics_bucket(UINT64_C(16777216000)), 25);
	ck_assert_uint_eq(metrics_bucket(UINT64_MAX), 25);
}

TEST(answers_are_counted_thrice)
{
	struct session a, b;
	struct metrics_event event = {.call = 3, .status = 0, .bytes_in = 5, .bytes_out = 7, .ns = 1500};
	struct metrics *metrics = &world.service.metrics;
	ck_assert_int_eq(session_init(&a, &world.service, 1001, 0, &world.error), 0);
	ck_assert_int_eq(session_init(&b, &world.service, 1001, 0, &world.error), 0);
	ck_assert_ptr_eq(a.user, b.user);
	metrics_count(metrics, &a.user->account, &a.usage, &event);
	event.status = NPUMEM_NOT_FOUND;
	metrics_count(metrics, &b.user->account, &b.usage, &event);
	ck_assert_uint_eq(metrics->all.calls[3].statuses[0], 1);
	ck_assert_uint_eq(metrics->all.calls[3].statuses[NPUMEM_NOT_FOUND], 1);
	ck_assert_uint_eq(metrics->all.calls[3].buckets[1], 2);
	ck_assert_uint_eq(metrics->all.calls[3].total_ns, 3000);
	ck_assert_uint_eq(a.usage.requests, 1);
	ck_assert_uint_eq(a.usage.errors, 0);
	ck_assert_uint_eq(b.usage.errors, 1);
	ck_assert_uint_eq(a.user->account.usage.requests, 2);
	ck_assert_uint_eq(a.user->account.usage.bytes_in, 10);
	ck_assert_uint_eq(metrics->all.usage.bytes_out, 14);
	ck_assert_uint_eq(a.user->account.calls[3].statuses[NPUMEM_NOT_FOUND], 1);
	ck_assert_uint_eq(a.user->account.sessions, 2);
	metrics_flight(metrics, &a.user->account, &a.usage, true);
	ck_assert_uint_eq(a.user->account.usage.in_flight, 1);
	metrics_flight(metrics, &a.user->account, &a.usage, false);
	ck_assert_uint_eq(metrics->all.usage.in_flight, 0);
	session_deinit(&a);
	session_deinit(&b);
	ck_assert_uint_eq(world.service.limits.users->account.usage.requests, 2);
}

TEST(the_longest_turn_is_forgotten_with_the_turn_that_asks)
{
	struct metrics_loop *loop = &world.service.metrics.loop;
	metrics_turn(&world.service.metrics, 5000, 40, 0);
	metrics_turn(&world.service.metrics, 3000, 50, 7);
	ck_assert_uint_eq(loop->longest_ns, 5000);
	ck_assert_uint_eq(loop->longest_cpu_ns, 50);
	ck_assert_uint_eq(loop->longest_wait_ns, 7);
	metrics_loop_reset(&world.service.metrics);
	ck_assert_uint_eq(loop->longest_ns, 5000);
	metrics_turn(&world.service.metrics, 9000, 60, 0);
	ck_assert_uint_eq(loop->longest_ns, 0);
	ck_assert_uint_eq(loop->longest_cpu_ns, 0);
	ck_assert_uint_eq(loop->longest_wait_ns, 0);
	metrics_turn(&world.service.metrics, 1000, 30, 0);
	ck_assert_uint_eq(loop->longest_ns, 1000);
	ck_assert_uint_eq(loop->longest_cpu_ns, 30);
	ck_assert_uint_eq(loop->turns, 4);
	ck_assert_uint_eq(loop->total_ns, 18000);
	ck_assert_uint_eq(loop->buckets[3], 1);
}

TEST(idle_uids_are_forgotten_oldest_first)
{
	struct session kept, passing;
	unsigned n = 0;
	ck_assert_int_eq(session_init(&kept, &world.service, 7, 0, &world.error), 0);
	for (uint32_t uid = 1000; uid < 1000 + 2 * LIMITS_IDLE_MAX; uid++) {
		ck_assert_int_eq(session_init(&passing, &world.service, uid, 0, &world.error), 0);
		session_deinit(&passing);
	}
	for (struct limits_user *row = world.service.limits.users; row; row = row->next, n++)
		ck_assert(row->uid == 7 || row->uid >= 1000 + LIMITS_IDLE_MAX);
	ck_assert_uint_eq(n, LIMITS_IDLE_MAX + 1);
	ck_assert_uint_eq(world.service.metrics.all.sessions, 1 + 2 * LIMITS_IDLE_MAX);
	session_deinit(&kept);
}

TEST(what_is_held)
{
	struct session session, other;
	int64_t npus[8] = {0};
	ck_assert_int_eq(session_init(&session, &world.service, 1001, 0, &world.error), 0);
	ck_assert_int_eq(session_init(&other, &world.service, 1002, 0, &world.error), 0);
	world_tensor(&world, &session, "");
	world_tensor(&world, &session, "x");
	world_tensor(&world, &other, "");
	ck_assert_uint_eq(session.unnamed->n, 1);
	ck_assert_uint_eq(session.unnamed->device_bytes, 8 * 128);
	ck_assert_uint_eq(session.user->now[LIMITS_TENSORS], 2);
	ck_assert_uint_eq(session.user->now[LIMITS_DEVICE_BYTES], 2 * 8 * 128);
	ck_assert_uint_eq(world.service.limits.now[LIMITS_TENSORS], 3);
	device_npus(world.device, npus);
	for (unsigned npu = 0; npu < 8; npu++)
		ck_assert_int_eq(npus[npu], 300);
	totals_of_npus(&session.user->totals, &device_options(world.device)->geometry, npus);
	ck_assert_int_eq(npus[7], 200);
	totals_of_npus(&other.user->totals, &device_options(world.device)->geometry, npus);
	ck_assert_int_eq(npus[7], 100);
	session_deinit(&session);
	session_deinit(&other);
}
