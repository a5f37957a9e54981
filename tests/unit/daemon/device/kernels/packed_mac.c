/* packed_mac: acc * 2^lshift + in1 * in2, over every combination of types, and its refusals. */
#include "tests/support/packed_oracle.h"

static int64_t formula(const struct packed_terms *t)
{
	return t->acc + t->in1 * t->in2;
}

START_TEST(every_type)
{
	packed_oracle_every_type(NPUMEM_KERNEL_PACKED_MAC, packed_oracle_mac_types, formula);
}
END_TEST

START_TEST(refusals)
{
	const struct packed_call good = {
		.in1 = NPUMEM_INT8, .in2 = NPUMEM_UINT8, .acc = NPUMEM_INT16, .out = NPUMEM_INT16};
	packed_oracle_refuses(NPUMEM_KERNEL_PACKED_MAC, &good);
	packed_oracle_refuses_shift(NPUMEM_KERNEL_PACKED_MAC, &good, NPUMEM_PARAM_RSHIFT);
	packed_oracle_refuses_shift(NPUMEM_KERNEL_PACKED_MAC, &good, NPUMEM_PARAM_LSHIFT);
}
END_TEST

Suite *suite_packed_mac(void)
{
	Suite *suite = suite_create("device/kernels/packed_mac");
	TCase *tcase = tcase_create("packed_mac");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
