/* Dot products of every width against plain 64-bit sums, at the ends of their blocks. */
#include <check.h>
#include <stdlib.h>

#include "daemon/device/fixed/dot.h"
#include "tests/support/oracle.h"

static const struct {
	unsigned a, b;
} widths[] = {{1, 1}, {2, 2}, {2, 1}};

static int64_t put(void *to, unsigned bytes, int64_t i, int64_t value)
{
	if (bytes == 1)
		((int8_t *)to)[i] = (int8_t)value;
	else
		((int16_t *)to)[i] = (int16_t)value;
	return value;
}

/* extreme: all elements at the lower end. */
static void check_sum(unsigned w, int64_t n, bool extreme, uint64_t *state)
{
	/* Of exactly their size, so that a sanitizer sees a step past the end. */
	void *a = malloc((size_t)n * widths[w].a + !n), *b = malloc((size_t)n * widths[w].b + !n);
	ck_assert(a && b);
	int64_t end_a = widths[w].a == 1 ? 128 : 32768, end_b = widths[w].b == 1 ? 128 : 32768, want = 0;
	for (int64_t i = 0; i < n; i++) {
		int64_t x = extreme ? -end_a : oracle_sample(state, -end_a, end_a - 1);
		int64_t y = extreme ? -end_b : oracle_sample(state, -end_b, end_b - 1);
		want += put(a, widths[w].a, i, x) * put(b, widths[w].b, i, y);
	}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		ck_assert_int_eq(dot((enum isa)isa, a, widths[w].a, b, widths[w].b, n), want);
	free(a);
	free(b);
}

START_TEST(against_plain_sums)
{
	uint64_t state = 5;
	for (unsigned w = 0; w < 3; w++)
		for (int64_t n = 0; n < 700; n += n < 40 ? 1 : 31)
			check_sum(w, n, false, &state);
}
END_TEST

/* Blocks of 2^8 and 2^16 products, whose sums would be 2^30: one product more or less, and two blocks. */
START_TEST(extremes)
{
	static const int64_t counts[] = {255, 256, 257, 512, 1000, 65535, 65536, 65537, 131072, 200000};
	uint64_t state = 6;
	for (unsigned w = 0; w < 3; w++)
		for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			check_sum(w, counts[i], true, &state);
}
END_TEST

Suite *suite_dot(void)
{
	Suite *suite = suite_create("device/fixed/dot");
	TCase *tcase = tcase_create("dot");
	tcase_add_test(tcase, against_plain_sums);
	tcase_add_test(tcase, extremes);
	suite_add_tcase(suite, tcase);
	return suite;
}
