/* Dot products in every instruction set against plain 64-bit sums. */
#include <stdlib.h>

#include "daemon/device/fixed/rows/dot.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

/* extreme: all elements at the lower end. */
static void check_sum(int64_t n, bool extreme, uint64_t *state)
{
	/* Of exactly their size, so that a sanitizer sees a step past the end. */
	int16_t *a = malloc((size_t)n * sizeof(*a) + !n), *b = malloc((size_t)n * sizeof(*b) + !n);
	int64_t want = 0;
	ck_assert(a && b);
	for (int64_t i = 0; i < n; i++) {
		a[i] = (int16_t)(extreme ? INT16_MIN : oracle_sample(state, INT16_MIN, INT16_MAX));
		b[i] = (int16_t)(extreme ? INT16_MIN : oracle_sample(state, INT16_MIN, INT16_MAX));
		want += (int64_t)a[i] * b[i];
	}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
		ck_assert_int_eq(dot((enum isa)isa, a, b, n), want);
	free(a);
	free(b);
}

TEST(against_plain_sums)
{
	uint64_t state = 5;
	for (int64_t n = 0; n < 700; n += n < 40 ? 1 : 31)
		check_sum(n, false, &state);
}

TEST(extremes)
{
	static const int64_t counts[] = {1, 2, 3, 31, 32, 33, 255, 256, 257, 65537, 200000};
	uint64_t state = 6;
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		check_sum(counts[i], true, &state);
}
