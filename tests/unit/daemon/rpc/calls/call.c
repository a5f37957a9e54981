/* What a call holds is in its uid's books, whatever it waits for. */
#include "daemon/rpc/calls/call.h"

#include <stdio.h>

#include "tests/unit/daemon/rpc/crowd.h"

enum { MANY = 200, NAME_BYTES = 8, SOME = 40 };

static char names[MANY][NAME_BYTES];

/* A fill of "long" is under way, and there are MANY small tensors. */
static void init(void)
{
	crowd_alloc(0, "long", LONG_W);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(names[i], NAME_BYTES, "t%u", i);
		ck_assert_int_eq(crowd_status(0, crowd_alloc(0, names[i], SHORT_W)), 0);
	}
	crowd_fill(0, "long", 1);
	ck_assert_uint_eq(crowd.n_tasks, 1);
}

static uint64_t booked(void)
{
	return crowd.peers[0].session.user->now[LIMITS_REQUEST_BYTES];
}

/* Fills of all of them, and of "long" first. */
static uint64_t fill_all(unsigned from)
{
	struct crowd_op ops[MANY + 1] = {{.kind = 'f', .first = "long", .value = 2}};
	for (unsigned i = 0; i < MANY; i++)
		ops[i + 1] = (struct crowd_op){.kind = 'f', .first = names[i], .value = 2};
	return crowd_list(from, ops, MANY + 1);
}

/* `n` requests in addition, that wait, hold so much host memory; malloc rounds up. */
static void check_books(size_t bytes_before, uint64_t booked_before)
{
	uint64_t booked_since = booked() - booked_before;
	ck_assert_uint_gt(crowd.world.n_bytes, bytes_before);
	ck_assert_uint_le(crowd.world.n_bytes - bytes_before, booked_since + booked_since / 16);
}

TEST(short_ones_that_wait)
{
	uint64_t before, last = 0;
	init();
	before = booked();
	size_t bytes = crowd.world.n_bytes;
	for (unsigned i = 0; i < SOME; i++)
		last = crowd_fill(0, "long", 2);
	check_books(bytes, before);
	/* As many as a uid may have of them. */
	ck_assert_uint_lt((booked() - before) / SOME * 4096, UINT64_C(256) << 20);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, last), 0);
	ck_assert_uint_eq(booked(), 0);
}

TEST(a_list_that_waits_for_its_turn)
{
	init();
	uint64_t before = booked();
	size_t bytes = crowd.world.n_bytes;
	uint64_t list = fill_all(1);
	ck_assert_int_eq(crowd_status(1, list), -1);
	check_books(bytes, before);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(1, list), 0);
	ck_assert_uint_eq(booked(), 0);
}

/* Before it is resolved, too: a view of a tensor that is to be freed holds up what follows. */
TEST(a_list_that_is_held)
{
	init();
	crowd_free(0, "long");
	crowd_alloc(0, "held", SHORT_W);
	uint64_t before = booked();
	size_t bytes = crowd.world.n_bytes;
	uint64_t list = fill_all(0);
	ck_assert_int_eq(crowd_status(0, list), -1);
	check_books(bytes, before);
	crowd_finish_all();
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_NOT_FOUND);
	ck_assert_uint_eq(booked(), 0);
}

/* Refused by what it would hold, not by the bytes of its message. */
TEST(what_may_not_be_held_is_refused)
{
	init();
	limits_set_own(&crowd.world.service.limits, 1001, LIMITS_REQUEST_BYTES, 40 << 10);
	uint64_t list = fill_all(1);
	ck_assert_int_eq(crowd_status(1, list), NPUMEM_RESOURCE_EXHAUSTED);
	crowd_free(0, "long");
	crowd_alloc(0, "held", SHORT_W);
	list = fill_all(0);
	ck_assert_int_eq(crowd_status(0, list), NPUMEM_RESOURCE_EXHAUSTED);
	crowd_finish_all();
	ck_assert_uint_eq(booked(), 0);
}
