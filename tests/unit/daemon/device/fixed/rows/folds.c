/* Folds of every instruction set against plain loops: every tail, strides, numbers of rows and taps. */
#include "daemon/device/fixed/rows/folds.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle.h"
#include "tests/support/test.h"

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
	fold_columns((enum fold)fold, isa, &rows, n, columns);
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

/* What element (row, x) of the padded input is. */
static int32_t padded(const struct fold_pool *p, int fold, int64_t row, int64_t x)
{
	const struct fold_rows rows = {p->in, p->bytes, p->wide, 1};
	return x < p->before || x >= p->before + p->wide ? fold_start((enum fold)fold)
							 : element(&rows, row, x - p->before);
}

static int32_t window(const struct fold_pool *p, int fold, int64_t row, int64_t x)
{
	int32_t folded = fold_start((enum fold)fold);
	for (int64_t y = 0; y < p->taps_down; y++)
		for (int64_t t = 0; t < p->taps; t++)
			folded = of_two(fold, folded,
					padded(p, fold, row * p->row_step + y * p->dilation_down,
					       x * p->stride + t * p->dilation));
	return folded;
}

/* In every container that holds the results; memory past them is as long as it is said to be. */
static void check_pool(int fold, enum isa isa, unsigned bytes, int64_t n, uint64_t *state)
{
	unsigned least = fold == FOLD_SUM && bytes == 2 ? 4 : fold == FOLD_SUM ? 2 : bytes;
	struct fold_pool p = {.bytes = bytes,
			      .width = oracle_random(state) % 3 ? least : 4,
			      .row_step = oracle_between(state, 1, 3),
			      .taps_down = oracle_between(state, 1, TAPS_MAX),
			      .dilation_down = oracle_between(state, 1, 3),
			      .taps = oracle_between(state, 1, TAPS_MAX),
			      .stride = oracle_between(state, 1, STRIDE_MAX),
			      .dilation = oracle_between(state, 1, 3),
			      .n_rows = oracle_between(state, 1, 4),
			      .n = n};
	int64_t length = (n - 1) * p.stride + (p.taps - 1) * p.dilation + 1;
	p.before = oracle_between(state, 0, length - 1);
	p.after = oracle_between(state, 0, length - 1 - p.before);
	p.wide = length - p.before - p.after;
	int64_t in = ((p.n_rows - 1) * p.row_step + (p.taps_down - 1) * p.dilation_down + 1) * p.wide + FOLD_PAST;
	uint8_t *data = malloc((size_t)in * bytes), *to = malloc((size_t)(p.n_rows * n + FOLD_PAST) * p.width);
	for (int64_t i = 0; i < in * bytes; i++)
		data[i] = (uint8_t)oracle_random(state);
	p.in = data;
	p.to = to;
	p.columns = malloc((size_t)(p.n_rows * fold_pool_pitch(&p) + FOLD_PAST) * p.width);
	fold_pool((enum fold)fold, isa, &p);
	for (int64_t i = 0; i < p.n_rows * n; i++) {
		const struct fold_rows results = {to, p.width, 0, 1};
		int32_t want = window(&p, fold, i / n, i % n);
		int32_t got = p.width == 4 ? ((int32_t *)p.to)[i] : element(&results, 0, i);
		ck_assert_int_eq(got, want == fold_start((enum fold)fold) ? fold_start_in(want, p.width) : want);
	}
	free(data);
	free(to);
	free(p.columns);
}

TEST(every_tail)
{
	uint64_t state = 11;
	for (int fold = 0; fold < FOLD_N; fold++)
		for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
			for (int64_t n = 1; n <= LENGTH_MAX; n++)
				for (int round = 0; round < 4; round++) {
					check_rows(fold, (enum isa)isa, 1 + round % 2, n, &state);
					check_pool(fold, (enum isa)isa, 1 + round % 2, n, &state);
				}
}
