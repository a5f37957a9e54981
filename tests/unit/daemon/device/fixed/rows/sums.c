/* Rows of sums under each instruction set against the joins one by one: every number of outputs, every rounding,
 * ordinary formats and such as no loop takes. */
#include <stdlib.h>
#include <string.h>

#include "daemon/device/fixed/rows/sums.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { OUTPUTS_MAX = 150, GAP = 3 };

struct sample {
	unsigned bytes, bias_bytes;
	int64_t n, step, sums[4 * (OUTPUTS_MAX + GAP)];
	int8_t bias8[OUTPUTS_MAX];
	int16_t bias16[OUTPUTS_MAX];
	struct sums_bias bias;
};

static void sample_init(struct sample *s, unsigned bytes, int64_t n, uint64_t *state)
{
	s->bytes = bytes;
	s->n = n;
	s->step = n + oracle_between(state, 0, GAP);
	/* Within the accumulator, at its ends, and far past them. */
	int64_t bits = oracle_between(state, 0, 3) ? oracle_between(state, 1, bytes == 1 ? 31 : 39) : 62;
	for (int i = 0; i < 4 * (OUTPUTS_MAX + GAP); i++)
		s->sums[i] = oracle_sample(state, -(INT64_C(1) << bits), INT64_C(1) << bits);
	for (int i = 0; i < OUTPUTS_MAX; i++) {
		s->bias8[i] = (int8_t)oracle_sample(state, INT8_MIN, INT8_MAX);
		s->bias16[i] = (int16_t)oracle_sample(state, INT16_MIN, INT16_MAX);
	}
	s->bias.bytes = bytes == 1 ? 1 : (unsigned)oracle_between(state, 1, 2);
	s->bias.data = s->bias.bytes == 1 ? (void *)s->bias8 : s->bias16;
	if (oracle_between(state, 0, 3) == 0)
		s->bias.data = NULL;
}

static int64_t bias_of(const struct sample *s, int64_t i)
{
	return !s->bias.data ? 0 : s->bias.bytes == 1 ? s->bias8[i] : s->bias16[i];
}

/* Where `multi` is NULL by `rescaled`. */
static void check_row(const struct sample *s, const struct multi_sum *multi, const struct rescaled_sum *rescaled)
{
	int16_t want[OUTPUTS_MAX], got[OUTPUTS_MAX + 1];
	struct sums_counts counts = {0, 0};
	for (int64_t i = 0; i < s->n; i++) {
		int64_t x = multi ? multi_sum_join(multi, s->sums + i, s->step, bias_of(s, i), &counts.saturated,
						   &counts.wrapped)
				  : rescaled_sum_join(rescaled, s->sums[i], s->sums[s->step + i], bias_of(s, i),
						      &counts.saturated, &counts.wrapped);
		if (s->bytes == 1)
			((int8_t *)want)[i] = (int8_t)x;
		else
			want[i] = (int16_t)x;
	}
	for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa)) {
		struct sums_counts counted = {0, 0};
		memset(got, 0x55, sizeof(got));
		if (multi)
			sums_multi((enum isa)isa, multi, s->sums, s->step, &s->bias, s->n, got, &counted);
		else
			sums_rescaled((enum isa)isa, rescaled, s->sums, s->step, &s->bias, s->n, got, &counted);
		ck_assert_mem_eq(got, want, (size_t)s->n * s->bytes);
		ck_assert_int_eq(((uint8_t *)got)[s->n * s->bytes], 0x55);
		ck_assert_int_eq(counted.saturated, counts.saturated);
		ck_assert_int_eq(counted.wrapped, counts.wrapped);
	}
}

/* Mostly what networks have, sometimes anything. */
static int64_t shift_of(uint64_t *state)
{
	switch (oracle_between(state, 0, 5)) {
	case 0:
		return oracle_between(state, -127, 254);
	case 1:
		return oracle_between(state, -25, 0);
	case 2:
		return oracle_between(state, 55, 70);
	default:
		return oracle_between(state, 0, 30);
	}
}

static void check_random(int64_t n, int mode, uint64_t *state)
{
	struct sample s;
	struct requantize result;
	unsigned bytes = (unsigned)oracle_between(state, 1, 2), n_sums = (unsigned)oracle_between(state, 1, 4);
	int64_t shifts[4], bias_shift = oracle_between(state, 0, 2) ? oracle_between(state, 0, 12)
								    : oracle_between(state, 0, 254);
	bool common = oracle_between(state, 0, 2) > 0;
	sample_init(&s, bytes, n, state);
	for (unsigned i = 0; i < n_sums; i++)
		shifts[i] = common ? oracle_between(state, 0, 30) : shift_of(state);
	requantize_init(&result, bytes == 1 ? NPUMEM_FX8 : NPUMEM_FX16, common ? shifts[0] : shift_of(state),
			(enum npumem_rounding)mode);
	struct multi_sum multi;
	struct rescaled_sum rescaled;
	multi_sum_init(&multi, bytes, shifts, n_sums, bias_shift, &result);
	rescaled_sum_init(&rescaled, bytes, bias_shift,
			  common ? oracle_between(state, -20, 20) : oracle_between(state, -127, 127), &result);
	check_row(&s, &multi, NULL);
	check_row(&s, NULL, &rescaled);
}

TEST(random_rows)
{
	uint64_t state = 9;
	for (int64_t n = 1; n <= OUTPUTS_MAX; n++)
		for (int mode = 1; mode <= 3; mode++)
			for (int round = 0; round < 6; round++)
				check_random(n, mode, &state);
}
