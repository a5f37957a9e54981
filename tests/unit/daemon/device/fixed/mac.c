/* Rows of products: the three widths, steps, and all-minimum operands up to the bound of 32-bit sums. */
#include <check.h>
#include <stdbool.h>

#include "daemon/device/fixed/mac.h"
#include "tests/support/oracle.h"

enum { LENGTH = 37, STEP_MAX = 3 };

START_TEST(against_plain_loops)
{
	static const struct mac macs[] = {{1, 4}, {2, 4}, {1, 8}, {2, 8}};
	uint64_t state = 4;
	for (unsigned m = 0; m < 4; m++) {
		for (int64_t step = 1; step <= STEP_MAX; step++) {
			int8_t row8[LENGTH * STEP_MAX];
			int16_t row16[LENGTH * STEP_MAX];
			int32_t sums32[LENGTH + 1];
			int64_t sums64[LENGTH + 1], want[LENGTH + 1];
			bool small = macs[m].row_bytes == 1 || macs[m].sum_bytes == 4;
			int64_t end = small ? INT8_MAX : INT16_MAX;
			for (int i = 0; i < LENGTH * STEP_MAX; i++) {
				row16[i] = (int16_t)oracle_sample(&state, -end - 1, end);
				row8[i] = (int8_t)row16[i];
			}
			int64_t scalar_end = macs[m].sum_bytes == 4 ? INT8_MAX : INT16_MAX;
			int32_t scalar = (int32_t)oracle_sample(&state, -scalar_end - 1, scalar_end);
			for (int i = 0; i <= LENGTH; i++)
				want[i] = sums64[i] = sums32[i] = (int32_t)oracle_between(&state, -1000, 1000);
			for (int i = 0; i < LENGTH; i++)
				want[i] += (int64_t)scalar * row16[i * step];
			mac_row(&macs[m], macs[m].sum_bytes == 4 ? (void *)sums32 : (void *)sums64,
				macs[m].row_bytes == 1 ? (void *)row8 : (void *)row16, step, scalar, LENGTH);
			for (int i = 0; i <= LENGTH; i++)
				ck_assert_int_eq(macs[m].sum_bytes == 4 ? sums32[i] : sums64[i], want[i]);
		}
	}
}
END_TEST

START_TEST(all_minimum_operands)
{
	static const struct mac narrow = {1, 4}, wide = {2, 8};
	int8_t row8 = INT8_MIN;
	int16_t row16 = INT16_MIN;
	int32_t sum32 = 0;
	int64_t sum64 = 0;
	for (int i = 0; i < 131071; i++)
		mac_row(&narrow, &sum32, &row8, 1, INT8_MIN, 1);
	ck_assert_int_eq(sum32, INT32_MAX - 16383);
	for (int i = 0; i < 512; i++)
		mac_row(&wide, &sum64, &row16, 1, INT16_MIN, 1);
	ck_assert_int_eq(sum64, INT64_C(1) << 39);
}
END_TEST

enum { ROWS_MAX = 600, ROW_MAX = 1300 };

/* Rows of `end` and scalars of `scalar_end` at most, as the kernels have them. */
Suite *suite_mac(void)
{
	Suite *suite = suite_create("device/fixed/mac");
	TCase *tcase = tcase_create("mac");
	tcase_add_test(tcase, against_plain_loops);
	tcase_add_test(tcase, all_minimum_operands);
	suite_add_tcase(suite, tcase);
	return suite;
}
