/* No uid hides another in the log. */
#include "daemon/server/connections/flood.h"

#include "tests/support/test.h"

static const uint64_t second = 1000000000;

TEST(one_has_an_end_and_the_others_do_not_feel_it)
{
	struct flood flood = {.since_ns = 0};
	struct flood_loss loss;
	unsigned n = 0;
	for (unsigned i = 0; i < 1000; i++)
		n += flood_admit(&flood, 7, 5 * second, &loss);
	ck_assert_uint_eq(n, FLOOD_LINES_MAX);
	for (unsigned i = 0; i < FLOOD_LINES_MAX; i++)
		ck_assert(flood_admit(&flood, 8, 5 * second + i, &loss));
	ck_assert_uint_eq(loss.n, 0);
	ck_assert(flood_admit(&flood, 9, 6 * second, &loss));
	ck_assert_uint_eq(loss.n, 1000 - FLOOD_LINES_MAX);
	ck_assert_uint_eq(loss.uid, 7);
	ck_assert(flood_admit(&flood, 7, 6 * second, &loss));
	ck_assert_uint_eq(loss.n, 0);
}

TEST(more_uids_than_are_told_apart)
{
	struct flood flood = {.since_ns = 0};
	struct flood_loss loss;
	unsigned n = 0;
	for (uint32_t uid = 0; uid < 1000; uid++)
		n += flood_admit(&flood, uid, 0, &loss);
	ck_assert_uint_eq(n, FLOOD_UIDS_MAX + FLOOD_LINES_MAX);
	flood_admit(&flood, 1, second, &loss);
	ck_assert_uint_eq(loss.n, 1000 - n);
}
