/* packed_min: the smaller, over every combination of types, and its refusals. */
#include "tests/support/packed_oracle.h"

static int64_t formula(const struct packed_terms *t)
{
	return t->in1 < t->in2 ? t->in1 : t->in2;
}

START_TEST(every_type)
{
	packed_oracle_every_type(NPUMEM_KERNEL_PACKED_MIN, packed_oracle_order_types, formula);
}
END_TEST

START_TEST(refusals)
{
	const struct packed_call good = {.in1 = NPUMEM_UINT8, .in2 = NPUMEM_UINT8, .out = NPUMEM_UINT8};
	packed_oracle_refuses(NPUMEM_KERNEL_PACKED_MIN, &good);
}
END_TEST

Suite *suite_packed_min(void)
{
	Suite *suite = suite_create("device/kernels/packed_min");
	TCase *tcase = tcase_create("packed_min");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
