/* Means: the truncated reciprocal's own examples and its distance from the truth. */
#include "tests/support/test.h"

#include "daemon/device/fixed/mean.h"

TEST(reciprocals)
{
	static const struct mean means[] = {
		{1, 16384, 14}, {2, 16384, 15}, {3, 21845, 16},	 {4, 16384, 16},
		{7, 18724, 17}, {9, 29127, 18}, {49, 21399, 20}, {INT64_C(1) << 30, 16384, 44}};
	for (unsigned i = 0; i < sizeof(means) / sizeof(means[0]); i++) {
		struct mean mean;
		mean_init(&mean, means[i].n);
		ck_assert_int_eq(mean.multiplier, means[i].multiplier);
		ck_assert_int_eq(mean.shift, means[i].shift);
	}
}

/* "Result differs from the exactly rounded mean by at most 1 lsb." */
TEST(one_unit_apart)
{
	int64_t saturated = 0, apart = 0;
	for (int64_t n = 1; n <= 300; n++)
		for (int64_t mode = 1; mode <= 3; mode++)
			for (int64_t sum = -128 * n; sum <= 127 * n; sum += n < 7 ? 1 : n / 7) {
				struct mean mean;
				mean_init(&mean, n);
				int64_t truncated = mean_truncated(&mean, sum, 7, 7, (enum npumem_rounding)mode,
								   -128, 127, &saturated);
				int64_t exact = mean_exact(&mean, sum, 7, 7, (enum npumem_rounding)mode, -128, 127,
							   &saturated);
				if (truncated < exact - 1 || truncated > exact + 1)
					ck_abort_msg("%lld / %lld is %lld and %lld", (long long)sum, (long long)n,
						     (long long)truncated, (long long)exact);
				apart += truncated != exact;
			}
	ck_assert_int_gt(apart, 0);
	ck_assert_int_eq(saturated, 0);
}

/* The largest sum that an accumulator holds, in formats that saturate it and that leave nothing of it. */
TEST(ends)
{
	struct mean mean;
	int64_t saturated = 0;
	mean_init(&mean, 1);
	ck_assert_int_eq(mean_truncated(&mean, -(INT64_C(1) << 39), 0, 127, NPUMEM_UP, -32768, 32767, &saturated),
			 -32768);
	ck_assert_int_eq(mean_exact(&mean, (INT64_C(1) << 39) - 1, 0, 127, NPUMEM_UP, -32768, 32767, &saturated),
			 32767);
	ck_assert_int_eq(saturated, 2);
	ck_assert_int_eq(mean_truncated(&mean, -(INT64_C(1) << 39), 127, 0, NPUMEM_UP, -32768, 32767, &saturated),
			 0);
	ck_assert_int_eq(mean_exact(&mean, -(INT64_C(1) << 39), 127, 0, NPUMEM_UP, -32768, 32767, &saturated), 0);
	ck_assert_int_eq(saturated, 2);
}
