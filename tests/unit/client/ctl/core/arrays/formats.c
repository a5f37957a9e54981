#include <math.h>

#include "client/ctl/core/arrays/values.h"
#include "tests/support/test.h"

static struct values of(double *data, size_t n)
{
	return (struct values){.n_dims = 2, .shape = {1, (int64_t)n}, .n = n, .is_real = true, .data = data};
}

static int64_t most(double one, double other, int dtype)
{
	double data[] = {0, one, other};
	struct values values = of(data, 3);
	int64_t frac_bits;
	return formats_auto(&values, dtype, NPUMEM_UP, &frac_bits, NULL) ? -1 : frac_bits;
}

TEST(the_most_that_clips_nothing)
{
	ck_assert_int_eq(most(0, 0, NPUMEM_FX8), 7);
	ck_assert_int_eq(most(0, 0, NPUMEM_FX16), 15);
	ck_assert_int_eq(most(-1, 0.5, NPUMEM_FX8), 7);
	ck_assert_int_eq(most(1, 0, NPUMEM_FX8), 6);
	ck_assert_int_eq(most(127, -128, NPUMEM_FX8), 0);
	ck_assert_int_eq(most(128, 0, NPUMEM_FX8), -1);
	/* 127.5 is 128 where halves go up. */
	ck_assert_int_eq(most(127.5, 0, NPUMEM_FX8), -1);
	ck_assert_int_eq(most(127.4, 0, NPUMEM_FX8), 0);
	ck_assert_int_eq(most(1e-300, 0, NPUMEM_FX8), NPUMEM_FRAC_BITS_MAX);
	ck_assert_int_eq(most(INFINITY, 0, NPUMEM_FX16), -1);
	ck_assert_int_eq(most(NAN, 0, NPUMEM_FX16), -1);
}

TEST(what_a_candidate_costs)
{
	double data[] = {1, -1, 0.3, 3};
	struct values values = of(data, 4);
	struct formats_candidate candidate;
	formats_judge(&values, NPUMEM_FX8, 6, NPUMEM_UP, &candidate);
	ck_assert_int_eq(candidate.clipped, 1);
	ck_assert_double_eq(candidate.largest, 3 - 127.0 / 64);
	formats_judge(&values, NPUMEM_FX16, 0, NPUMEM_UP, &candidate);
	ck_assert_int_eq(candidate.clipped, 0);
	ck_assert_double_eq(candidate.largest, 0.3);
	data[2] = 0;
	formats_judge(&values, NPUMEM_FX16, 0, NPUMEM_UP, &candidate);
	ck_assert(isinf(candidate.snr));
}

TEST(sums_of_one_output)
{
	double data[] = {1, -2, 3, -4, 5, 6, 7, 8};
	struct values values = {.n_dims = 3, .shape = {2, 2, 2}, .n = 8, .is_real = true, .data = data};
	/* As [1,2,2,2] the outputs are the second dimension. */
	ck_assert_int_eq(formats_weights_sum(&values, NPUMEM_FX8, 0, NPUMEM_UP, false), 26);
	values.n_dims = 4;
	values.shape[0] = 2, values.shape[1] = 2, values.shape[2] = 1, values.shape[3] = 2;
	ck_assert_int_eq(formats_weights_sum(&values, NPUMEM_FX8, 0, NPUMEM_UP, false), 22);
	ck_assert_int_eq(formats_weights_sum(&values, NPUMEM_FX8, 0, NPUMEM_UP, true), 15);
	ck_assert_int_eq(formats_weights_sum(&values, NPUMEM_FX8, 6, NPUMEM_UP, true), 255);
}
