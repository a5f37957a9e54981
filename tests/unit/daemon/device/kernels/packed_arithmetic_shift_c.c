/* packed_arithmetic_shift_c: a shift that keeps the sign, over every combination of types, and its refusals. */
#include "tests/support/packed_oracle.h"

static int64_t formula(const struct packed_terms *t)
{
	int64_t bits = packed_oracle_shift(t->in1, t->in2, true);
	return bits >= 32768 && t->out == NPUMEM_INT16 ? bits - 65536 : bits;
}

START_TEST(every_type)
{
	packed_oracle_every_type(NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT_C, packed_oracle_arithmetic_types, formula);
}
END_TEST

START_TEST(every_amount)
{
	const struct packed_call call = {.in1 = NPUMEM_INT16, .in2 = NPUMEM_INT16, .out = NPUMEM_INT16};
	packed_oracle_every_amount(NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT_C, call, formula);
}
END_TEST

START_TEST(refusals)
{
	const struct packed_call good = {.in1 = NPUMEM_INT16, .in2 = NPUMEM_INT16, .out = NPUMEM_INT16};
	packed_oracle_refuses(NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT_C, &good);
	packed_oracle_refuses_value(NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT_C, &good,
				    packed_oracle_arithmetic_types);
	packed_oracle_default_dtype(NPUMEM_KERNEL_PACKED_ARITHMETIC_SHIFT_C, good, NPUMEM_INT16);
}
END_TEST

Suite *suite_packed_arithmetic_shift_c(void)
{
	Suite *suite = suite_create("device/kernels/packed_arithmetic_shift_c");
	TCase *tcase = tcase_create("packed_arithmetic_shift_c");
	tcase_add_test(tcase, every_type);
	tcase_add_test(tcase, every_amount);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
