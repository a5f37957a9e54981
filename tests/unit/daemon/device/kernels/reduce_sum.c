/* reduce_sum: every subset of axes against plain loops, the ends of its accumulators, and its refusals. */
#include "tests/support/reduce_oracle.h"
#include "tests/unit/daemon/device/kernels/progress.h"

START_TEST(every_subset)
{
	uint64_t state = 701;
	for (unsigned axes = 0; axes < 16; axes++)
		for (int mode = 1; mode <= 3; mode++)
			reduce_oracle_run(NPUMEM_KERNEL_REDUCE_SUM, axes, mode, &state);
}
END_TEST

/* All-minimum elements: 2^24 of them are the accumulator's lowest value, one more wraps to its other end. */
START_TEST(wraps)
{
	for (int dtype = NPUMEM_FX8; dtype <= NPUMEM_FX16; dtype++)
		for (int64_t more = 0; more <= 1; more++) {
			struct calls c;
			int64_t n = (INT64_C(1) << 24) + more;
			calls_init(&c, NPUMEM_KERNEL_REDUCE_SUM);
			uint8_t *in = calls_add(&c, "in", dtype, 50, 1, 1, 1, n);
			calls_add(&c, "out", dtype, 24, 1, 1, 1, 1);
			for (int64_t i = 0; dtype == NPUMEM_FX16 && i < n; i++)
				in[2 * i + 1] = 0x80;
			if (dtype == NPUMEM_FX8)
				memset(in, 0x80, (size_t)n);
			calls_run(&c);
			/* -2^31 / 2^26 and (2^31 - 2^7) / 2^26; for fx16 2^8 times as much. */
			int64_t exact = dtype == NPUMEM_FX8 ? 32 : 8192;
			ck_assert_int_eq(calls_get(&c, 1, 0), more ? exact : -exact);
			ck_assert_int_eq(c.call.counts.wrapped, more);
			ck_assert_int_eq(c.call.counts.saturated, 0);
			calls_free(&c);
		}
}
END_TEST

START_TEST(progress)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_REDUCE_SUM);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 300);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, 1, 4, 300);
	calls_param(&c, NPUMEM_PARAM_AXES, 1, 2, 0, 0, 0);
	progress_check(&c, REDUCE_ORACLE_OUT, 342); /* one of three rows of 1,024 */
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	reduce_oracle_refuses(NPUMEM_KERNEL_REDUCE_SUM);
}
END_TEST

Suite *suite_reduce_sum(void)
{
	Suite *suite = suite_create("device/kernels/reduce_sum");
	TCase *tcase = tcase_create("reduce_sum"), *slow = tcase_create("reduce_sum_slow");
	tcase_add_test(tcase, every_subset);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	tcase_set_tags(slow, "slow");
	tcase_add_test(slow, wraps);
	suite_add_tcase(suite, slow);
	return suite;
}
