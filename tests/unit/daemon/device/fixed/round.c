/* One value: the arithmetic chapter's own figures, ties of both signs, every shift count, and the oracle. */

#include "daemon/device/fixed/round.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

static int64_t clamp16(int64_t x, int64_t shift, enum npumem_rounding rounding, int64_t *saturated)
{
	return round_clamp(x, shift, rounding, INT16_MIN, INT16_MAX, saturated);
}

TEST(worked_examples)
{
	int64_t saturated = 0;
	/* "For an FX value 0x24 in Q.8 format the FX value in Q.12 format: 0x24 << (12 - 8) = 0x240" */
	ck_assert_int_eq(clamp16(0x24, 8 - 12, NPUMEM_UP, &saturated), 0x240);
	/* "0x24 in Q.4 format (2.25), the FX value in Q.1 with rounding mode up: 0x28 >> 3 = 0x5" */
	ck_assert_int_eq(clamp16(0x24, 4 - 1, NPUMEM_UP, &saturated), 5);
	/* 36 / 8 = 4.5 is a tie: half to even gives 4, half away from zero 5. */
	ck_assert_int_eq(clamp16(0x24, 3, NPUMEM_CONVERGENT, &saturated), 4);
	ck_assert_int_eq(clamp16(0x24, 3, NPUMEM_NEAREST, &saturated), 5);
	ck_assert_int_eq(saturated, 0);
}

static const struct {
	int64_t x, up, convergent, nearest;
} halves[] = {
	{-7, -3, -4, -4}, {-5, -2, -2, -3}, {-3, -1, -2, -2}, {-1, 0, 0, -1}, {0, 0, 0, 0},
	{1, 1, 0, 1},	  {2, 1, 1, 1},	    {3, 2, 2, 2},     {5, 3, 2, 3},   {7, 4, 4, 4},
};

TEST(ties_of_both_signs)
{
	for (unsigned i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
		int64_t x = halves[i].x;
		ck_assert_int_eq(round_right(x, 1, NPUMEM_UP), halves[i].up);
		ck_assert_int_eq(round_right(x, 1, NPUMEM_CONVERGENT), halves[i].convergent);
		ck_assert_int_eq(round_right(x, 1, NPUMEM_NEAREST), halves[i].nearest);
		ck_assert_int_eq(round_right32((int32_t)x, 1, NPUMEM_UP), halves[i].up);
		ck_assert_int_eq(round_right32((int32_t)x, 1, NPUMEM_CONVERGENT), halves[i].convergent);
		ck_assert_int_eq(round_right32((int32_t)x, 1, NPUMEM_NEAREST), halves[i].nearest);
	}
}

TEST(at_and_past_the_width)
{
	/* -2^63 / 2^64 is the tie -1/2: only away from zero gives -1. */
	ck_assert_int_eq(round_right(INT64_MIN, 64, NPUMEM_NEAREST), -1);
	ck_assert_int_eq(round_right(INT64_MIN, 64, NPUMEM_UP), 0);
	ck_assert_int_eq(round_right(INT64_MIN, 64, NPUMEM_CONVERGENT), 0);
	ck_assert_int_eq(round_right(INT64_MAX, 64, NPUMEM_NEAREST), 0);
	ck_assert_int_eq(round_right(INT64_MAX, 63, NPUMEM_CONVERGENT), 1);
	ck_assert_int_eq(round_right(INT64_MIN, 63, NPUMEM_CONVERGENT), -1);
	ck_assert_int_eq(round_right(INT64_MIN, 65, NPUMEM_NEAREST), 0);
	ck_assert_int_eq(round_right(-1, 254, NPUMEM_NEAREST), 0);
	int64_t saturated = 0;
	ck_assert_int_eq(clamp16(-1, -254, NPUMEM_UP, &saturated), INT16_MIN);
	ck_assert_int_eq(clamp16(1, -63, NPUMEM_UP, &saturated), INT16_MAX);
	ck_assert_int_eq(clamp16(0, -254, NPUMEM_UP, &saturated), 0);
	ck_assert_int_eq(saturated, 2);
	/* The reference's registers round 127 / 4 to 31 here (the rounding constant saturates); exactly it is 32.
	 */
	ck_assert_int_eq(round_right(127, 2, NPUMEM_UP), 32);
}

TEST(left_to_the_very_end)
{
	int64_t saturated = 0;
	ck_assert_int_eq(clamp16(-1, -15, NPUMEM_UP, &saturated), INT16_MIN);
	ck_assert_int_eq(clamp16(16383, -1, NPUMEM_UP, &saturated), 32766);
	ck_assert_int_eq(saturated, 0);
	ck_assert_int_eq(clamp16(1, -15, NPUMEM_UP, &saturated), INT16_MAX);
	ck_assert_int_eq(clamp16(-3, -14, NPUMEM_UP, &saturated), INT16_MIN);
	ck_assert_int_eq(saturated, 2);
	ck_assert_int_eq(round_clamp(UINT32_MAX, 0, NPUMEM_UP, 0, UINT32_MAX, &saturated), UINT32_MAX);
	ck_assert_int_eq(saturated, 2);
	ck_assert_int_eq(round_clamp(-1, -3, NPUMEM_UP, 0, UINT32_MAX, &saturated), 0);
	ck_assert_int_eq(saturated, 3);
}

TEST(against_the_oracle)
{
	static const int64_t edges[] = {INT64_MIN, INT64_MIN + 1, -3,	    -2, -1, 0, 1, 2,
					3,	   INT64_MAX - 1, INT64_MAX};
	uint64_t state = 1;
	for (int mode = 1; mode <= 3; mode++) {
		for (int64_t shift = -70; shift <= 70; shift++) {
			for (unsigned i = 0; i < 24; i++) {
				int64_t x = i < 11 ? edges[i]
						   : (int64_t)((uint64_t)oracle_random(&state) << 33 ^
							       (uint64_t)oracle_random(&state) << 8) >>
							     oracle_random(&state) % 60;
				int64_t saturated = 0, clamped = 0;
				int64_t got = clamp16(x, shift, (enum npumem_rounding)mode, &saturated);
				int64_t want =
					oracle_result(oracle_of(x), shift, mode, INT16_MIN, INT16_MAX, &clamped);
				ck_assert_msg(got == want && saturated == clamped,
					      "mode %d: %lld by %lld is %lld (%lld), not %lld (%lld)", mode,
					      (long long)x, (long long)shift, (long long)got, (long long)saturated,
					      (long long)want, (long long)clamped);
			}
		}
	}
}
