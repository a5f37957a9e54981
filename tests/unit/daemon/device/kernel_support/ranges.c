/* Each part is taken once, whatever the order of the threads, which stay apart. */
#include "daemon/device/kernel_support/ranges.h"

#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { PARTS = 100 };

TEST(who_has_none_takes_the_back_half_of_the_longest)
{
	struct ranges ranges;
	ranges_init(&ranges, PARTS);
	ck_assert_int_eq(ranges_take(&ranges, 0), 0);
	ck_assert_int_eq(ranges_take(&ranges, 1), 50);
	ck_assert_int_eq(ranges_take(&ranges, 0), 1);
	ck_assert_int_eq(ranges_take(&ranges, 1), 51);
	ck_assert_int_eq(ranges_take(&ranges, RANGES_MAX - 1), 26);
}

TEST(each_part_once)
{
	uint64_t state = 1;
	for (int64_t n = 1; n <= PARTS; n++) {
		struct ranges ranges;
		unsigned taken[PARTS] = {0};
		int64_t n_taken = 0, part;
		ranges_init(&ranges, n);
		for (unsigned number = 0; (part = ranges_take(&ranges, number)) >= 0; n_taken++) {
			ck_assert_int_lt(part, n);
			taken[part]++;
			number = (unsigned)oracle_between(&state, 0, RANGES_MAX - 1);
		}
		ck_assert_int_eq(n_taken, n);
		for (int64_t i = 0; i < n; i++)
			ck_assert_uint_eq(taken[i], 1);
	}
}
