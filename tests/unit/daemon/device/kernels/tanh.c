/* tanh: every input of both containers, the real function, and its refusals. */
#include "tests/unit/daemon/device/kernels/maps.h"

START_TEST(every_value_of_fx8)
{
	for (int64_t frac_bits = 0; frac_bits <= 127; frac_bits += frac_bits < 30 ? 1 : 97)
		for (int library = 0; library <= 2; library++)
			for (int mode = 1; mode <= 3; mode++)
				maps_every_value(NPUMEM_KERNEL_TANH, TABLES_TANH, NPUMEM_FX8, frac_bits, library,
						 mode);
}
END_TEST

START_TEST(every_value_of_fx16)
{
	static const int64_t formats[] = {0, 4, 5, 12, 20, 25, 127};
	for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		maps_every_value(NPUMEM_KERNEL_TANH, TABLES_TANH, NPUMEM_FX16, formats[f], (int)f % 3,
				 (int)f % 3 + 1);
}
END_TEST

START_TEST(many_of_fx8)
{
	maps_many(NPUMEM_KERNEL_TANH, TABLES_TANH);
}
END_TEST

START_TEST(near_the_real_function)
{
	maps_near_the_real_function(NPUMEM_KERNEL_TANH, TABLES_TANH);
}
END_TEST

START_TEST(refusals)
{
	maps_refusals(NPUMEM_KERNEL_TANH, "tanh");
}
END_TEST

Suite *suite_tanh(void)
{
	Suite *suite = suite_create("device/kernels/tanh");
	TCase *tcase = tcase_create("tanh");
	tcase_add_test(tcase, every_value_of_fx8);
	tcase_add_test(tcase, every_value_of_fx16);
	tcase_add_test(tcase, many_of_fx8);
	tcase_add_test(tcase, near_the_real_function);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
