/* Sums of terms whose formats are 0 to 127 bits apart. */

#include "daemon/device/fixed/align.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

static void check_sum(int64_t first, int64_t first_frac, int64_t second, int64_t second_frac, int64_t out_frac,
		      int dtype, int mode)
{
	struct align align;
	align_init(&align, first_frac, second_frac);
	struct requantize result;
	requantize_init(&result, dtype, align.frac_bits - out_frac, (enum npumem_rounding)mode);
	int64_t saturated = 0, want_saturated = 0;
	int64_t got = align_sum(&align, first, second, &result, &saturated);
	int64_t most = first_frac > second_frac ? first_frac : second_frac;
	struct oracle sum = oracle_add(oracle_double(oracle_of(first), most - first_frac),
				       oracle_double(oracle_of(second), most - second_frac));
	int64_t want = oracle_result(sum, most - out_frac, mode, result.low, result.high, &want_saturated);
	ck_assert_msg(got == want && saturated == want_saturated,
		      "mode %d: %lld Q.%lld + %lld Q.%lld in Q.%lld is %lld, not %lld", mode, (long long)first,
		      (long long)first_frac, (long long)second, (long long)second_frac, (long long)out_frac,
		      (long long)got, (long long)want);
}

TEST(far_apart)
{
	/* A tie (2^-1 Q.0 has none, but 1 Q.1 has) that the tiniest other term decides. */
	for (int mode = 1; mode <= 3; mode++)
		for (int64_t tiny = -1; tiny <= 1; tiny++)
			for (int64_t one = -3; one <= 3; one++) {
				check_sum(one, 1, tiny, 127, 0, NPUMEM_FX16, mode);
				check_sum(tiny, 127, one, 1, 0, NPUMEM_FX8, mode);
				check_sum(tiny, 33, one, 1, 0, NPUMEM_FX16, mode);
				check_sum(one, 0, tiny, 127, 127, NPUMEM_FX16, mode);
				check_sum(one, 127, tiny, 0, 127, NPUMEM_FX16, mode);
			}
}

TEST(against_the_oracle)
{
	uint64_t state = 7;
	for (int i = 0; i < 6000; i++) {
		int64_t end = i % 3 == 0 ? INT64_C(1) << 31 : i % 3 == 1 ? INT16_MAX : INT8_MAX;
		int64_t first_frac = oracle_between(&state, 0, i % 2 ? 127 : 20);
		int64_t second_frac = oracle_between(&state, 0, i % 2 ? 127 : 20);
		int64_t out_frac = i % 5 == 0 ? oracle_between(&state, 0, 127)
					      : (first_frac < second_frac ? first_frac : second_frac) -
							oracle_between(&state, -9, 9);
		check_sum(oracle_sample(&state, -end, end), first_frac, oracle_sample(&state, -end, end),
			  second_frac, out_frac, i % 7 ? NPUMEM_FX16 : NPUMEM_FX8, i % 3 + 1);
	}
}
