/* What calls hold is bounded, and in nobody's books when they are over. */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/handlers/operations/operate.h"

#include "tests/unit/daemon/rpc/crowd.h"

static void may_have(enum limits_key key, uint64_t most)
{
	ck_assert_int_eq(limits_set_own(&crowd.world.service.limits, 1001, key, most), 0);
}

static uint64_t has(enum limits_key key)
{
	return crowd.peers[0].session.user->now[key];
}

/* A fill of "long" is under way. */
static void init(void)
{
	ck_assert_int_eq(crowd_status(0, crowd_alloc(0, "long", LONG_W)), 0);
	crowd_fill(0, "long", 1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
}

static void check_over(void)
{
	crowd_finish_all();
	for (int key = LIMITS_REQUESTS; key <= LIMITS_REQUEST_BYTES; key++)
		ck_assert_uint_eq(has((enum limits_key)key), 0);
	ck_assert_uint_eq(has(LIMITS_SCRATCH_BYTES), 0);
	ck_assert_uint_eq(crowd.peers[0].session.user->account.usage.in_flight, 0);
}

TEST(as_many_as_a_uid_may_have_wait)
{
	init();
	may_have(LIMITS_REQUESTS, 2);
	uint64_t second = crowd_fill(0, "long", 2);
	uint64_t third = crowd_fill(1, "long", 3);
	ck_assert_int_eq(crowd_status(0, second), -1);
	ck_assert_int_eq(crowd_status(1, third), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_uint_eq(crowd.peers[0].session.user->account.usage.in_flight, 2);
	check_over();
}

/* A free is decided when it arrives: what it must wait for may be more than its user may have waiting. */
TEST(a_free_beyond_the_limit_is_answered_as_it_went)
{
	init();
	may_have(LIMITS_REQUESTS, 1);
	uint64_t free = crowd_free(1, "long");
	ck_assert_int_eq(crowd_status(1, free), -1);
	ck_assert_uint_eq(has(LIMITS_REQUESTS), 2);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, free), 0);
	ck_assert_int_eq(crowd_status(0, crowd_open(0, "long")), NPUMEM_NOT_FOUND);
	check_over();
}

TEST(a_read_that_waits_holds_what_it_will_answer)
{
	Npumem__V1__ReadRequest request = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = talk_ref(0, "long");
	init();
	uint64_t before = has(LIMITS_REQUEST_BYTES);
	request.tensor = &ref;
	CROWD_SEND(0, read, READ, &request);
	ck_assert_uint_ge(has(LIMITS_REQUEST_BYTES) - before, 8 * LONG_W);
	check_over();
}

/* Also where the host has no memory for its answer. */
TEST(what_a_kernel_runs_in)
{
	crowd_alloc(0, "a", SHORT_W);
	crowd_alloc(0, "b", SHORT_W);
	crowd_fill(0, "a", 1);
	may_have(LIMITS_SCRATCH_BYTES, 8);
	uint64_t run = crowd_relu(0, "a", "b");
	ck_assert_int_eq(crowd_status(0, run), NPUMEM_RESOURCE_EXHAUSTED);
	may_have(LIMITS_SCRATCH_BYTES, UINT64_MAX);
	for (size_t i = 1, before = 0; before < crowd.world.n_allocs; i++) {
		life_pool_deinit(crowd.rpc);
		operate_pool_deinit(crowd.rpc);
		crowd.world.fail_at = crowd.world.n_allocs + i;
		crowd_relu(0, "a", "b");
		ck_assert_uint_eq(has(LIMITS_SCRATCH_BYTES), 0);
		before = crowd.world.fail_at;
	}
	crowd.world.fail_at = 0;
	run = crowd_relu(0, "a", "b");
	ck_assert_int_eq(crowd_status(0, run), 0);
	check_over();
}
