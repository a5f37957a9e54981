/* Products of every width, in every number of columns and terms, of rows and of pairs of them, under each
 * instruction set, against plain 64-bit sums; operands of exactly their size, so that a sanitizer sees a step past
 * the end. */
#include <stdlib.h>

#include "daemon/device/fixed/rows/gemv.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

static const struct {
	unsigned vector, weights;
} widths[] = {{1, 1}, {2, 2}, {2, 1}};

enum { N_WIDTHS = sizeof(widths) / sizeof(widths[0]) };

/* What each element of n is: any, or all the lowest, or the highest one. */
enum fill { ANY, LOWEST, HIGHEST, FILLS };

static void *take(unsigned bytes, int64_t n, enum fill fill, uint64_t *state)
{
	int64_t end = bytes == 1 ? 128 : 32768;
	void *data = malloc((size_t)n * bytes + !n);
	ck_assert_ptr_nonnull(data);
	for (int64_t i = 0; i < n; i++) {
		int64_t x = fill == ANY ? oracle_sample(state, -end, end - 1) : fill == LOWEST ? -end : end - 1;
		if (bytes == 1)
			((int8_t *)data)[i] = (int8_t)x;
		else
			((int16_t *)data)[i] = (int16_t)x;
	}
	return data;
}

static int64_t get(const void *data, unsigned bytes, int64_t i)
{
	return bytes == 1 ? ((const int8_t *)data)[i] : ((const int16_t *)data)[i];
}

/* Where term k of column j lies. */
static int64_t at(const struct gemv *gemv, int64_t k, int64_t j)
{
	return gemv->pairs ? k / 2 * 2 * gemv->row + 2 * j + k % 2 : k * gemv->row + j;
}

/* n sums of `terms` products; rows of weights are `gap` elements apart. */
static void check_sums(unsigned w, int64_t n, int64_t terms, int64_t gap, bool pairs, enum fill fill,
		       uint64_t *state)
{
	struct gemv gemv = {.vector_bytes = widths[w].vector,
			    .weight_bytes = widths[w].weights,
			    .n_terms = terms,
			    .row = n + gap,
			    .pairs = pairs};
	int64_t last = pairs ? terms - 1 + terms % 2 : terms - 1;
	void *vector = take(gemv.vector_bytes, terms, fill, state);
	void *weights =
		take(gemv.weight_bytes, terms ? at(&gemv, last, n - 1) + 1 : 0, fill == ANY ? ANY : LOWEST, state);
	int64_t *want = malloc((size_t)n * sizeof(*want)), *got = malloc((size_t)n * sizeof(*got));
	ck_assert(want && got);
	gemv.vector = vector;
	gemv.weights = weights;
	for (int64_t i = 0; i < n; i++) {
		want[i] = i * 1000003;
		for (int64_t k = 0; k < terms; k++)
			want[i] += get(vector, gemv.vector_bytes, k) *
				   get(weights, gemv.weight_bytes, at(&gemv, k, i));
	}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
		for (int64_t i = 0; i < n; i++)
			got[i] = i * 1000003;
		gemv_columns((enum isa)isa, &gemv, n, got);
		for (int64_t i = 0; i < n; i++)
			ck_assert_msg(got[i] == want[i], "isa %d: %ux%u bytes, %d sums of %d terms: sum %d", isa,
				      widths[w].vector, widths[w].weights, (int)n, (int)terms, (int)i);
	}
	free(vector);
	free(weights);
	free(want);
	free(got);
}

TEST(every_tail)
{
	uint64_t state = 5;
	for (unsigned w = 0; w < N_WIDTHS; w++)
		for (int64_t n = 1; n <= 70; n++)
			for (int pairs = 0; pairs < 2; pairs++) {
				check_sums(w, n, n % 71, n % 3, pairs, ANY, &state);
				check_sums(w, n, oracle_between(&state, 0, 70), 0, pairs, ANY, &state);
				check_sums(w, oracle_between(&state, 1, 300), n, 1, pairs, ANY, &state);
			}
}

/* The largest sums that 32 bits have to hold, one term more or less, and several times as many. */
TEST(extremes)
{
	static const int64_t counts[] = {255, 256, 257, 511, 512, 513, 1000, 2048};
	uint64_t state = 6;
	for (unsigned w = 0; w < N_WIDTHS; w++)
		for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			for (int fill = LOWEST; fill < FILLS; fill++) {
				check_sums(w, 133, counts[i], 0, false, (enum fill)fill, &state);
				check_sums(w, 133, counts[i], 0, true, (enum fill)fill, &state);
			}
}
