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
static const struct {
	struct mac mac;
	int64_t end, scalar_end;
} kinds[] = {
	{{1, 4}, INT8_MAX, INT8_MAX},  {{2, 4}, INT8_MAX, INT8_MAX},  {{1, 8}, INT8_MAX, INT8_MAX},
	{{1, 8}, INT8_MAX, INT16_MAX}, {{2, 8}, INT16_MAX, INT8_MAX}, {{2, 8}, INT16_MAX, INT16_MAX},
};

static int64_t value(uint64_t *state, int64_t end, unsigned fill)
{
	return fill == 0 ? -1 - end : fill == 1 ? end : oracle_sample(state, -1 - end, end);
}

/* `rows` rows of n elements that overlap, as taps do. */
static void check_rows(unsigned kind, int64_t rows, int64_t n, unsigned fill)
{
	static int8_t elements8[ROW_MAX + ROWS_MAX];
	static int16_t elements16[ROW_MAX + ROWS_MAX], scalars[ROWS_MAX];
	static int64_t offsets[ROWS_MAX], sums64[ROW_MAX], want[ROW_MAX];
	static int32_t sums32[ROW_MAX];
	uint64_t state = (uint64_t)(rows * n + kind);
	const struct mac *mac = &kinds[kind].mac;
	for (int64_t i = 0; i < n + rows; i++) {
		elements16[i] = (int16_t)value(&state, kinds[kind].end, fill / 3);
		elements8[i] = (int8_t)elements16[i];
	}
	for (int64_t j = 0; j < n; j++)
		want[j] = sums64[j] = sums32[j] = (int32_t)oracle_between(&state, -1000, 1000);
	for (int64_t r = 0; r < rows; r++) {
		offsets[r] = oracle_between(&state, 0, rows);
		scalars[r] = (int16_t)value(&state, kinds[kind].scalar_end, fill % 3);
		for (int64_t j = 0; j < n; j++)
			want[j] += (int64_t)scalars[r] * elements16[offsets[r] + j];
	}
	mac_rows(mac, mac->sum_bytes == 4 ? (void *)sums32 : (void *)sums64,
		 mac->row_bytes == 1 ? (void *)elements8 : (void *)elements16, offsets, scalars, rows, n);
	for (int64_t j = 0; j < n; j++)
		if ((mac->sum_bytes == 4 ? sums32[j] : sums64[j]) != want[j])
			ck_abort_msg("kind %u, %lld rows: sum %lld of %lld is wrong", kind, (long long)rows,
				     (long long)j, (long long)n);
}

START_TEST(several_rows)
{
	static const int64_t shapes[][2] = {{0, 3},    {1, 1},	  {3, 7},    {4, 8},
					    {9, 1023}, {9, 1300}, {257, 17}, {600, 3}};
	for (unsigned kind = 0; kind < 6; kind++)
		for (unsigned s = 0; s < 8; s++)
			for (unsigned fill = 0; fill < 9; fill++)
				check_rows(kind, shapes[s][0], shapes[s][1], fill);
}
END_TEST

Suite *suite_mac(void)
{
	Suite *suite = suite_create("device/fixed/mac");
	TCase *tcase = tcase_create("mac");
	tcase_add_test(tcase, against_plain_loops);
	tcase_add_test(tcase, all_minimum_operands);
	tcase_add_test(tcase, several_rows);
	suite_add_tcase(suite, tcase);
	return suite;
}
