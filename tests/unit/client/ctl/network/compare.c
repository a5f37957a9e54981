#include "client/ctl/core/network/compare.h"

#include <check.h>
#include <math.h>

START_TEST(the_first_that_differs)
{
	static const int8_t is[] = {1, 2, 3, 4, 5, 6}, expected[] = {1, 2, 3, 5, 5, 4};
	static const int64_t shape[] = {1, 2, 3};
	struct compare compare = {.n = 0};
	char text[160];
	compare_add(&compare, NPUMEM_FX8, is, expected, 2);
	compare_add(&compare, NPUMEM_FX8, is + 2, expected + 2, 4);
	ck_assert_uint_eq(compare.n, 6);
	ck_assert_uint_eq(compare.n_differ, 2);
	ck_assert_uint_eq(compare.first, 3);
	/* 10 log10(80 / 5) */
	ck_assert(fabs(compare_snr(&compare) - 12.0412) < 1e-4);
	ck_assert_str_eq(compare_text(&compare, shape, 3, text, sizeof(text)),
			 "[0,1,0] is 4, 5 is expected; 2 of 6 differ, by up to 2; SNR 12.0 dB");
}
END_TEST

START_TEST(nothing_differs)
{
	static const int16_t is[] = {-32768, 32767};
	struct compare compare = {.n = 0};
	compare_add(&compare, NPUMEM_INT16, is, is, 2);
	ck_assert_uint_eq(compare.n_differ, 0);
	ck_assert(isinf(compare_snr(&compare)));
}
END_TEST

START_TEST(real_numbers)
{
	const float is[] = {1.5F, NAN, INFINITY, -0.0F}, expected[] = {1.5F, NAN, INFINITY, 0.0F},
		    other[] = {0, 0, 0, 0};
	struct compare compare = {.n = 0};
	compare_add(&compare, NPUMEM_FP32, is, expected, 4);
	ck_assert_uint_eq(compare.n_differ, 0);
	compare_add(&compare, NPUMEM_FP32, is, other, 4);
	ck_assert_uint_eq(compare.n_differ, 3);
	ck_assert_uint_eq(compare.first, 4);
	/* No signal-to-noise ratio lets a NaN pass. */
	ck_assert(compare_snr(&compare) == -INFINITY);
}
END_TEST

START_TEST(every_type_of_integer)
{
	static const struct {
		int dtype;
		uint32_t is;
		double value;
	} rows[] = {
		{NPUMEM_INT8, 0xff, -1},	{NPUMEM_UINT8, 0xff, 255},
		{NPUMEM_INT16, 0xffff, -1},	{NPUMEM_UINT16, 0xffff, 65535},
		{NPUMEM_INT32, 0xffffffff, -1}, {NPUMEM_UINT32, 0xffffffff, 4294967295.0},
	};
	const uint32_t zero = 0;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct compare compare = {.n = 0};
		compare_add(&compare, rows[i].dtype, &rows[i].is, &zero, 1);
		ck_assert(compare.is == rows[i].value);
	}
}
END_TEST

Suite *suite_compare(void)
{
	Suite *suite = suite_create("client/ctl/network/compare");
	TCase *tcase = tcase_create("compare");
	tcase_add_test(tcase, the_first_that_differs);
	tcase_add_test(tcase, nothing_differs);
	tcase_add_test(tcase, real_numbers);
	tcase_add_test(tcase, every_type_of_integer);
	suite_add_tcase(suite, tcase);
	return suite;
}
