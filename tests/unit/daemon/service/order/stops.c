/* What is owed after a stop, and by whom. */
#include "daemon/service/order/stops.h"

#include "tests/unit/daemon/service/world.h"

enum { MS = 1000000 };

static uint64_t now_ns;
static struct {
	struct world world;
	struct session one, other, admin;
} s;

static uint64_t test_clock(void)
{
	return now_ns;
}

static void begin(void)
{
	world_init(&s.world);
	s.world.service.events.now_ns = test_clock;
	now_ns = 1000 * (uint64_t)MS;
	session_init(&s.one, &s.world.service, 1001, 1, NULL);
	session_init(&s.other, &s.world.service, 1002, 1, NULL);
	session_init(&s.admin, &s.world.service, 500, 1, NULL);
}

static void end(void)
{
	session_deinit(&s.one);
	session_deinit(&s.other);
	session_deinit(&s.admin);
	world_deinit(&s.world);
}

static int check(struct session *session)
{
	npumem_error_clear(&s.world.error);
	return stops_check(session, STOPS_COMPACTIONS, &s.world.error);
}

TEST(five_percent)
{
	ck_assert_int_eq(check(&s.one), 0);
	stops_charge(&s.one, STOPS_COMPACTIONS, 2 * MS);
	stops_charge(&s.one, STOPS_COMPACTIONS, 3 * MS);
	ck_assert_int_eq(check(&s.one), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(npumem_error_find(&s.world.error, "retry_ms", -1), 5 * 19);
	ck_assert_int_eq(npumem_error_find(&s.world.error, "percent", -1), 5);
	ck_assert_int_eq(check(&s.other), 0);
	now_ns += 5 * 19 * (uint64_t)MS - 1;
	ck_assert_int_eq(check(&s.one), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(npumem_error_find(&s.world.error, "retry_ms", -1), 1);
	now_ns++;
	ck_assert_int_eq(check(&s.one), 0);
	/* Time in which it stopped nobody is not saved up. */
	now_ns += 1000 * (uint64_t)MS;
	stops_charge(&s.one, STOPS_COMPACTIONS, MS);
	ck_assert_int_eq(check(&s.one), NPUMEM_RESOURCE_EXHAUSTED);
}

TEST(who_pays_nothing)
{
	stops_charge(&s.admin, STOPS_COMPACTIONS, 100 * MS);
	ck_assert_int_eq(check(&s.admin), 0);
	s.world.service.limits.stop_percent = 100;
	stops_charge(&s.one, STOPS_COMPACTIONS, 100 * MS);
	ck_assert_int_eq(check(&s.one), 0);
	s.world.service.limits.stop_percent = 50;
	stops_charge(&s.one, STOPS_COMPACTIONS, 100 * MS);
	ck_assert_int_eq(check(&s.one), NPUMEM_RESOURCE_EXHAUSTED);
	ck_assert_int_eq(npumem_error_find(&s.world.error, "retry_ms", -1), 100);
	/* Nobody else is there to be stopped. */
	session_deinit(&s.other);
	session_deinit(&s.admin);
	ck_assert_int_eq(check(&s.one), 0);
	session_init(&s.other, &s.world.service, 1002, 1, NULL);
	session_init(&s.admin, &s.world.service, 500, 1, NULL);
	s.world.service.events.now_ns = NULL;
	ck_assert_int_eq(check(&s.one), 0);
}

FIXTURE(begin, end)
