/* A time that what is moved gives back, at a rate. */
#include "daemon/server/loop/pace.h"

#include "tests/support/test.h"

enum { ALLOWED_MS = 30000, RATE = PACE_BYTES_PER_SECOND };

TEST(a_byte_now_and_then_is_as_good_as_none)
{
	struct pace pace;
	uint64_t now_ms = 5000;
	pace_begin(&pace, now_ms, ALLOWED_MS);
	for (; now_ms < 5000 + ALLOWED_MS; now_ms += 100) {
		ck_assert(!pace_is_over(&pace, now_ms));
		pace_moved(&pace, 1, now_ms, ALLOWED_MS);
	}
	ck_assert(pace_is_over(&pace, now_ms + 10));
}

TEST(the_least_rate_is_enough)
{
	struct pace pace;
	pace_begin(&pace, 0, ALLOWED_MS);
	/* In pieces of less than a millisecond's worth, too. */
	for (uint64_t now_ms = 1; now_ms < 10 * ALLOWED_MS; now_ms++) {
		for (unsigned i = 0; i < 3; i++)
			pace_moved(&pace, RATE / 3000 + 1, now_ms, ALLOWED_MS);
		ck_assert(!pace_is_over(&pace, now_ms));
	}
	pace_begin(&pace, 0, ALLOWED_MS);
	for (uint64_t now_ms = 1; now_ms < 3 * ALLOWED_MS; now_ms++)
		pace_moved(&pace, RATE / 2000, now_ms, ALLOWED_MS);
	ck_assert(pace_is_over(&pace, 3 * ALLOWED_MS));
}

TEST(nothing_is_saved_up)
{
	struct pace pace;
	pace_begin(&pace, 0, ALLOWED_MS);
	pace_moved(&pace, (size_t)1 << 33, 10, ALLOWED_MS);
	ck_assert(!pace_is_over(&pace, 9 + ALLOWED_MS));
	ck_assert(pace_is_over(&pace, 10 + ALLOWED_MS));
}
