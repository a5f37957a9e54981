/* packed_min_c: the smaller, over every combination of types, and its refusals. */
#include "tests/support/packed_oracle.h"

static int64_t formula(const struct packed_terms *t)
{
	return t->in1 < t->in2 ? t->in1 : t->in2;
}

START_TEST(every_type)
{
	packed_oracle_every_type(NPUMEM_KERNEL_PACKED_MIN_C, packed_oracle_order_types, formula);
}
END_TEST

START_TEST(refusals)
{
	const struct packed_call good = {.in1 = NPUMEM_UINT8, .in2 = NPUMEM_UINT8, .out = NPUMEM_UINT8};
	packed_oracle_refuses(NPUMEM_KERNEL_PACKED_MIN_C, &good);
	packed_oracle_refuses_value(NPUMEM_KERNEL_PACKED_MIN_C, &good, packed_oracle_order_types);
	packed_oracle_default_dtype(NPUMEM_KERNEL_PACKED_MIN_C, good, NPUMEM_UINT8);
}
END_TEST

Suite *suite_packed_min_c(void)
{
	Suite *suite = suite_create("device/kernels/packed_min_c");
	TCase *tcase = tcase_create("packed_min_c");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
