/* packed_add: in1 + in2, over every combination of types, and its refusals. */
#include "tests/support/packed_oracle.h"
#include "tests/unit/daemon/device/kernels/progress.h"

static int64_t formula(const struct packed_terms *t)
{
	return t->in1 + t->in2;
}

START_TEST(every_type)
{
	packed_oracle_every_type(NPUMEM_KERNEL_PACKED_ADD, packed_oracle_one_width, formula);
}
END_TEST

START_TEST(progress)
{
	const struct packed_call call = {.in1 = NPUMEM_INT8, .in2 = NPUMEM_INT8, .out = NPUMEM_INT16};
	struct calls c;
	packed_oracle_set_up(&c, NPUMEM_KERNEL_PACKED_ADD, &call, 87);
	progress_check(&c, 2, 256);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	const struct packed_call good = {.in1 = NPUMEM_INT8, .in2 = NPUMEM_UINT8, .out = NPUMEM_INT16};
	packed_oracle_refuses(NPUMEM_KERNEL_PACKED_ADD, &good);
	packed_oracle_refuses_shift(NPUMEM_KERNEL_PACKED_ADD, &good, NPUMEM_PARAM_RSHIFT);
}
END_TEST

Suite *suite_packed_add(void)
{
	Suite *suite = suite_create("device/kernels/packed_add");
	TCase *tcase = tcase_create("packed_add");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
