/* Folds of every instruction set against plain loops: every tail, strides, numbers of rows and taps. */
#include "daemon/device/fixed/rows/folds.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle.h"

enum { LENGTH_MAX = 300, ROWS_MAX = 20, TAPS_MAX = 6, STRIDE_MAX = 4 };

static int32_t of_two(int fold, int32_t a, int32_t b)
{
	return fold == FOLD_SUM ? a + b : fold == FOLD_LARGER ? (a > b ? a : b) : a < b ? a : b;
}

static int32_t element(const struct fold_rows *rows, int64_t row, int64_t i)
{
	const uint8_t *at = (const uint8_t *)rows->data + (row * rows->row + i) * rows->bytes;
	int16_t word;
	if (rows->bytes == 1)
		return (int8_t)*at;
	memcpy(&word, at, sizeof(word));
	return word;
}

static void check_pieces(int fold, enum isa isa, const struct fold_rows *rows, int64_t n)
{
	const void *data[ROWS_MAX];
	int32_t folded[ROWS_MAX + 1];
	for (int64_t r = 0; r < rows->n_rows; r++)
		data[r] = (const uint8_t *)rows->data + r * rows->row * rows->bytes;
	folded[rows->n_rows] = 17;
	fold_each((enum fold)fold, isa, &(struct fold_pieces){data, rows->bytes, rows->n_rows}, n, folded);
	for (int64_t r = 0; r < rows->n_rows; r++) {
		int32_t want = fold_start((enum fold)fold);
		for (int64_t i = 0; i < n; i++)
			want = of_two(fold, want, element(rows, r, i));
		ck_assert_int_eq(folded[r], want);
	}
	ck_assert_int_eq(folded[rows->n_rows], 17);
}

static void check_rows(int fold, enum isa isa, unsigned bytes, int64_t n, uint64_t *state)
{
	int64_t n_rows = 1 + (int64_t)(oracle_random(state) % ROWS_MAX);
	uint8_t *data = malloc((size_t)(n_rows * n * bytes));
	int32_t *columns = malloc((size_t)n * sizeof(*columns));
	for (int64_t i = 0; i < n_rows * n * bytes; i++)
		data[i] = (uint8_t)oracle_random(state);
	if (n % 7 == 0)
		memset(data, 0x80, (size_t)(n_rows * n * bytes));
	const struct fold_rows rows = {data, bytes, n, n_rows};
	int32_t across = fold_start((enum fold)fold);
	fold_columns((enum fold)fold, isa, &rows, sizeof(*columns), n, columns);
	for (int64_t i = 0; i < n; i++) {
		int32_t want = fold_start((enum fold)fold);
		for (int64_t r = 0; r < n_rows; r++)
			want = of_two(fold, want, element(&rows, r, i));
		ck_assert_int_eq(columns[i], want);
		across = of_two(fold, across, element(&rows, 0, i));
	}
	ck_assert_int_eq(fold_across((enum fold)fold, isa, &rows, n), across);
	check_pieces(fold, isa, &rows, n);
	free(data);
	free(columns);
}

static void check_windows(int fold, enum isa isa, int64_t n, uint64_t *state)
{
	int64_t stride = 1 + (int64_t)(oracle_random(state) % STRIDE_MAX);
	int64_t taps = 1 + (int64_t)(oracle_random(state) % TAPS_MAX), dilation = oracle_between(state, 1, 3);
	int64_t length = (n - 1) * stride + (taps - 1) * dilation + 1;
	int32_t *columns = malloc((size_t)length * sizeof(*columns)), *to = malloc((size_t)n * sizeof(*to));
	for (int64_t i = 0; i < length; i++)
		columns[i] = (int32_t)oracle_random(state) / 8;
	fold_windows((enum fold)fold, isa, columns, sizeof(*columns),
		     &(struct fold_window){stride, taps, dilation}, n, to);
	for (int64_t i = 0; i < n; i++) {
		int32_t want = fold_start((enum fold)fold);
		for (int64_t t = 0; t < taps; t++)
			want = of_two(fold, want, columns[i * stride + t * dilation]);
		ck_assert_int_eq(to[i], want);
	}
	free(columns);
	free(to);
}

/* In containers: of elements of `bytes` in `width`, memory of exactly their size. */
static void check_narrow(int fold, enum isa isa, unsigned bytes, int64_t n, uint64_t *state)
{
	unsigned width = fold == FOLD_SUM ? 2 : bytes;
	int64_t stride = 1 + (int64_t)(oracle_random(state) % 2), dilation = oracle_between(state, 1, 3),
		taps = 1 + (int64_t)(oracle_random(state) % TAPS_MAX);
	int64_t n_rows = 1 + (int64_t)(oracle_random(state) % ROWS_MAX),
		length = (n - 1) * stride + (taps - 1) * dilation + 1;
	uint8_t *data = malloc((size_t)(n_rows * length * bytes)), *columns = malloc((size_t)(length * width));
	uint8_t *to = malloc((size_t)(n * width));
	for (int64_t i = 0; i < n_rows * length * bytes; i++)
		data[i] = (uint8_t)oracle_random(state);
	for (int64_t i = 1; bytes == 2 && fold == FOLD_SUM && i < n_rows * length * bytes; i += 2)
		data[i] = (uint8_t)(data[i] % 2 - 1); /* so that words hold the sums */
	const struct fold_rows rows = {data, bytes, length, n_rows};
	fold_columns((enum fold)fold, isa, &rows, width, length, columns);
	fold_windows((enum fold)fold, isa, columns, width, &(struct fold_window){stride, taps, dilation}, n, to);
	const struct fold_rows folded = {columns, width, 0, 1}, windows = {to, width, 0, 1};
	for (int64_t i = 0; i < length; i++) {
		int32_t want = fold_start((enum fold)fold);
		for (int64_t r = 0; r < n_rows; r++)
			want = of_two(fold, want, element(&rows, r, i));
		ck_assert_int_eq(element(&folded, 0, i), want);
	}
	for (int64_t i = 0; i < n; i++) {
		int32_t want = fold_start((enum fold)fold);
		for (int64_t t = 0; t < taps; t++)
			want = of_two(fold, want, element(&folded, 0, i * stride + t * dilation));
		ck_assert_int_eq(element(&windows, 0, i), want);
	}
	free(data);
	free(columns);
	free(to);
}

START_TEST(every_tail)
{
	uint64_t state = 11;
	for (int fold = 0; fold < FOLD_N; fold++)
		for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
			for (int64_t n = 1; n <= LENGTH_MAX; n++)
				for (int round = 0; round < 4; round++) {
					check_rows(fold, (enum isa)isa, 1 + round % 2, n, &state);
					check_windows(fold, (enum isa)isa, n, &state);
					check_narrow(fold, (enum isa)isa, 1 + round % 2, n, &state);
				}
}
END_TEST

Suite *suite_folds(void)
{
	Suite *suite = suite_create("device/fixed/folds");
	TCase *tcase = tcase_create("folds");
	tcase_add_test(tcase, every_tail);
	suite_add_tcase(suite, tcase);
	return suite;
}
