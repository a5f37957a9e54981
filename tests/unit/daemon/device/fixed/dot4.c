/* Dot products at the ends of their operands, over lengths around a part, on one and several left rows. */
#include <stdlib.h>
#include <string.h>

#include "daemon/device/fixed/dot4.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { ROWS_MAX = 3, LENGTH_MAX = 1024 };

/* Which containers, and whether sums may be narrow. */
static const struct {
	int64_t left, right; /* lowest values */
	struct dot4 dot4;
} kinds[] = {
	{INT8_MIN, INT8_MIN, {4, false}},
	{INT8_MIN, INT8_MIN, {8, false}},
	{INT16_MIN, INT8_MIN, {8, false}},
	{INT16_MIN, INT16_MIN, {8, true}},
};

static int64_t value(uint64_t *state, int64_t low, unsigned fill)
{
	return fill == 0 ? low : fill == 1 ? -1 - low : oracle_sample(state, low, -1 - low);
}

static void check_kind(unsigned kind, int64_t rows, int64_t length, unsigned left_fill, unsigned right_fill)
{
	static int16_t left[ROWS_MAX * LENGTH_MAX], plain[DOT4_WIDTH * LENGTH_MAX],
		right[2 * DOT4_WIDTH * LENGTH_MAX];
	static int64_t sums[ROWS_MAX * DOT4_WIDTH];
	const struct dot4 *dot4 = &kinds[kind].dot4;
	uint64_t state = (uint64_t)(length + kind);
	for (int64_t i = 0; i < rows * length; i++)
		left[i] = (int16_t)value(&state, kinds[kind].left, left_fill);
	for (int64_t r = 0; r < DOT4_WIDTH; r++)
		for (int64_t k = 0; k < length; k++) {
			plain[r * length + k] = (int16_t)value(&state, kinds[kind].right, right_fill);
			dot4_put_right(dot4, right, length, r, k, plain[r * length + k]);
		}
	int64_t first = length / 2 / DOT4_LENGTH_STEP * DOT4_LENGTH_STEP;
	memset(sums, 0, sizeof(sums));
	dot4_rows(dot4, left, rows, right, length, first, sums);
	dot4_rows(dot4, left + first, rows, right + first, length, length - first, sums);
	for (int64_t r = 0; r < DOT4_WIDTH; r++)
		for (int64_t i = 0; i < rows; i++) {
			int64_t want = 0, at = r * rows + i;
			for (int64_t k = 0; k < length; k++)
				want += (int64_t)left[i * length + k] * plain[r * length + k];
			ck_assert_int_eq(
				dot4->sum_bytes == 4 ? ((const int32_t *)(const void *)sums)[at] : sums[at], want);
		}
}

TEST(exact_at_the_ends)
{
	static const int64_t lengths[] = {0, 8, 16, 248, 256, 264, 512, 1024};
	for (unsigned kind = 0; kind < 4; kind++)
		for (unsigned l = 0; l < 8; l++)
			for (unsigned fill = 0; fill < 9; fill++)
				check_kind(kind, 1 + l % ROWS_MAX, lengths[l], fill / 3, fill % 3);
}

/* As many all-minimum products as a narrow sum may have: 2^31 - 2^14. */
TEST(the_longest_narrow_sum)
{
	int64_t length = 131064;
	int16_t *left = malloc((size_t)length * sizeof(*left));
	int16_t *right = calloc((size_t)(DOT4_WIDTH * length), sizeof(*right));
	ck_assert(left && right);
	const struct dot4 dot4 = {4, false};
	for (int64_t k = 0; k < length; k++) {
		left[k] = INT8_MIN;
		dot4_put_right(&dot4, right, length, 0, k, INT8_MIN);
		dot4_put_right(&dot4, right, length, 3, k, INT8_MAX);
	}
	int32_t sums[DOT4_WIDTH] = {0};
	dot4_rows(&dot4, left, 1, right, length, length, sums);
	ck_assert_int_eq(sums[0], length * 16384);
	ck_assert_int_eq(sums[1], 0);
	ck_assert_int_eq(sums[3], -length * 128 * 127);
	free(left);
	free(right);
}
