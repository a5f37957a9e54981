/* Which replies may leave while the disk gets on. */
#include "daemon/server/connections/ripening.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tests/support/test.h"

TEST(what_needs_nothing_leaves_at_once)
{
	struct ripening ripening = {0};
	ripening_add(&ripening, 10, 0, 0);
	ripening_add(&ripening, 20, 7, 7);
	ck_assert(ripening.ripe == 20 && !ripening.n);
}

/* But not past what was before it. */
TEST(order_stays)
{
	struct ripening ripening = {0};
	ripening_add(&ripening, 10, 5, 0);
	ripening_add(&ripening, 20, 0, 0);
	ck_assert(ripening.ripe == 0 && ripening.n == 1);
	ck_assert(!ripening_advance(&ripening, 4));
	ck_assert(ripening_advance(&ripening, 5));
	ck_assert(ripening.ripe == 20 && !ripening.n);
}

/* What came while a round was under way does not hold back what the round has. */
TEST(two_steps)
{
	struct ripening ripening = {0};
	ripening_add(&ripening, 10, 5, 0);
	for (uint64_t i = 1; i <= 9; i++)
		ripening_add(&ripening, 10 + i, 5 + i, 0);
	ck_assert_uint_eq(ripening.n, 2);
	ck_assert(ripening_advance(&ripening, 5) && ripening.ripe == 10);
	ck_assert(!ripening_advance(&ripening, 13));
	ck_assert(ripening_advance(&ripening, 14) && ripening.ripe == 19 && !ripening.n);
}

/* Against what each reply needs. */
TEST(none_leaves_early)
{
	struct ripening ripening = {0};
	uint64_t needs[1000], position = 0, synced = 0;
	srand(1);
	for (uint64_t n = 0; n < 1000; n++) {
		position += (uint64_t)rand() % 3;
		needs[n] = rand() % 4 ? position : 0;
		ripening_add(&ripening, n + 1, needs[n], synced);
		if (rand() % 3 == 0) {
			synced += (uint64_t)rand() % (position - synced + 1);
			ripening_advance(&ripening, synced);
		}
		for (uint64_t i = 0; i < ripening.ripe; i++)
			ck_assert_uint_le(needs[i], synced);
	}
	ripening_advance(&ripening, position);
	ck_assert_uint_eq(ripening.ripe, 1000);
}
