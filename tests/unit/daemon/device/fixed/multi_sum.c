/* Sums rounded by themselves, against numbers of 512 bits: far apart, cancelling, wrapping. */

#include "daemon/device/fixed/multi_sum.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

struct totals {
	unsigned n, bytes;
	int64_t values[MULTI_SUM_MAX], shifts[MULTI_SUM_MAX];
	int64_t bias, bias_shift;
	int mode;
};

static void check_sums(const struct totals *s)
{
	struct requantize result;
	requantize_init(&result, s->bytes == 1 ? NPUMEM_FX8 : NPUMEM_FX16, 0, (enum npumem_rounding)s->mode);
	struct multi_sum multi;
	multi_sum_init(&multi, s->bytes, s->shifts, s->n, s->bias_shift, &result);
	int64_t spread[2 * MULTI_SUM_MAX], saturated = 0, wrapped = 0, want_saturated = 0, want_wrapped = 0;
	for (unsigned i = 0; i < s->n; i++)
		spread[2 * i] = s->values[i];
	int64_t got = multi_sum_join(&multi, spread, 2, s->bias, &saturated, &wrapped);
	struct oracle total = oracle_of(0);
	for (unsigned i = 0; i < s->n; i++) {
		struct oracle sum = oracle_of(s->values[i]);
		if (i == 0)
			sum = oracle_add(sum, oracle_double(oracle_of(s->bias), s->bias_shift));
		sum = oracle_wrap(sum, s->bytes == 1 ? 32 : 40, &want_wrapped);
		total = oracle_add(total, oracle_shift(sum, s->shifts[i], s->mode));
	}
	int64_t want = oracle_clamp(total, result.low, result.high, &want_saturated);
	ck_assert_int_eq(got, want);
	ck_assert_int_eq(saturated, want_saturated);
	ck_assert_int_eq(wrapped, want_wrapped);
}

TEST(random_sums)
{
	uint64_t state = 41;
	for (int round = 0; round < 2500; round++) {
		struct totals s = {.n = 1 + oracle_random(&state) % (round % 10 ? 4 : MULTI_SUM_MAX),
				   .bytes = 1 + oracle_random(&state) % 2,
				   .bias = oracle_sample(&state, -128, 127),
				   .bias_shift = oracle_random(&state) % (round % 3 ? 12 : 254),
				   .mode = round % 3 + 1};
		for (unsigned i = 0; i < s.n; i++) {
			int64_t end = INT64_C(1) << oracle_between(&state, 1, round % 5 ? 24 : 62);
			s.values[i] = oracle_sample(&state, -end, end);
			s.shifts[i] = oracle_between(&state, round % 4 ? -4 : -127, round % 4 ? 20 : 254);
		}
		check_sums(&s);
	}
}

/* 2^10 * 2^90 - 1 * 2^100, and what is left decides. */
TEST(totals_that_cancel_beyond_64_bits)
{
	for (int64_t rest = -3; rest <= 3; rest++)
		for (int64_t more = -1; more <= 1; more++) {
			struct totals s = {.n = 3,
					   .bytes = 2,
					   .values = {1024 + more, -1, rest},
					   .shifts = {-90, -100, -2},
					   .mode = ORACLE_UP};
			check_sums(&s);
			struct totals other_order = s;
			other_order.values[0] = rest;
			other_order.shifts[0] = -2;
			other_order.values[2] = 1024 + more;
			other_order.shifts[2] = -90;
			check_sums(&other_order);
		}
}
