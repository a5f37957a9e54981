/* Two sums in one accumulator, against numbers of 512 bits. */

#include "daemon/device/fixed/rescaled_sum.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

struct totals {
	unsigned bytes;
	int64_t first, second, bias, bias_shift, between, shift;
	int mode;
};

static void check_sums(const struct totals *s)
{
	struct requantize result;
	requantize_init(&result, s->bytes == 1 ? NPUMEM_FX8 : NPUMEM_FX16, s->shift,
			(enum npumem_rounding)s->mode);
	struct rescaled_sum rescaled;
	rescaled_sum_init(&rescaled, s->bytes, s->bias_shift, s->between, &result);
	int64_t saturated = 0, wrapped = 0, want_saturated = 0, want_wrapped = 0;
	int64_t got = rescaled_sum_join(&rescaled, s->first, s->second, s->bias, &saturated, &wrapped);
	unsigned bits = s->bytes == 1 ? 32 : 40, rest;
	struct oracle total = oracle_add(oracle_of(s->first), oracle_double(oracle_of(s->bias), s->bias_shift));
	total = oracle_wrap(total, bits, &want_wrapped);
	if (s->between > 0 && bits == 40)
		for (int64_t i = 0; i < s->between; i++)
			total = oracle_halve(total, &rest);
	else
		total = oracle_shift(total, s->between, s->mode);
	total = oracle_wrap(oracle_add(total, oracle_of(s->second)), bits, &want_wrapped);
	int64_t want = oracle_result(total, s->shift, s->mode, result.low, result.high, &want_saturated);
	ck_assert_int_eq(got, want);
	ck_assert_int_eq(saturated, want_saturated);
	ck_assert_int_eq(wrapped, want_wrapped > 0);
}

TEST(random_sums)
{
	uint64_t state = 43;
	for (int round = 0; round < 6000; round++) {
		int64_t first = INT64_C(1) << oracle_between(&state, 1, round % 5 ? 30 : 62);
		int64_t second = INT64_C(1) << oracle_between(&state, 1, round % 5 ? 30 : 62);
		check_sums(&(struct totals){
			.bytes = 1 + oracle_random(&state) % 2,
			.first = oracle_sample(&state, -first, first),
			.second = oracle_sample(&state, -second, second),
			.bias = oracle_sample(&state, -32768, 32767),
			.bias_shift = oracle_random(&state) % (round % 3 ? 12 : 254),
			.between = oracle_between(&state, round % 4 ? -10 : -127, round % 4 ? 10 : 127),
			.shift = oracle_between(&state, round % 4 ? -4 : -127, round % 4 ? 24 : 254),
			.mode = round % 3 + 1,
		});
	}
}

/* The ends of the accumulator, before and after the shift. */
TEST(ends)
{
	for (unsigned bytes = 1; bytes <= 2; bytes++)
		for (int64_t between = -66; between <= 66; between++)
			for (int64_t off = -2; off <= 2; off++)
				for (int sign = -1; sign <= 1; sign += 2) {
					int64_t end = sign * (INT64_C(1) << (bytes == 1 ? 31 : 39));
					int64_t part = between < 0 && between > -30 ? end / (1 << -between) : end;
					check_sums(&(struct totals){bytes, part + off, off, 0, 0, between, 20, 1});
					check_sums(&(struct totals){bytes, off, end + off, 0, 0, between, 20, 2});
				}
}
