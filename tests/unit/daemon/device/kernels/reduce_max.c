/* reduce_max: every subset of axes against plain loops, and its refusals. */
#include "tests/support/reduce_oracle.h"

START_TEST(every_subset)
{
	uint64_t state = 711;
	for (unsigned axes = 0; axes < 16; axes++)
		for (int mode = 1; mode <= 3; mode++)
			reduce_oracle_run(NPUMEM_KERNEL_REDUCE_MAX, axes, mode, &state);
}
END_TEST

START_TEST(refusals)
{
	reduce_oracle_refuses(NPUMEM_KERNEL_REDUCE_MAX);
}
END_TEST

Suite *suite_reduce_max(void)
{
	Suite *suite = suite_create("device/kernels/reduce_max");
	TCase *tcase = tcase_create("reduce_max");
	tcase_add_test(tcase, every_subset);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
