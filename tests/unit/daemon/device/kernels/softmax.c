/* softmax against its rules written out, and against the real function; the rule of fx8 with a spread beyond its
 * container; refusals. */
#include "tests/unit/daemon/device/kernels/groups.h"

/* What the rules make of xs[0..n). Returns how many were clamped. */
static int64_t softmax_of(const int64_t *xs, int64_t n, int64_t frac_bits, unsigned bytes, int library, int mode,
			  int64_t *ys)
{
	static struct tables tables[3];
	if (tables[library].size == 0)
		tables[library] = tables_of(TABLES_EXP, library);
	int64_t most = INT16_MIN, least = INT16_MAX, sum = 0, clamped = 0, ignored = 0;
	for (int64_t i = 0; i < n; i++) {
		most = xs[i] > most ? xs[i] : most;
		least = xs[i] < least ? xs[i] : least;
	}
	bool halve = bytes == 1 && most - least > 128;
	for (int64_t i = 0; i < n; i++) {
		int64_t x = halve ? tables_floor(xs[i], 2) - tables_floor(most, 2) : xs[i] - most;
		ys[i] = tables_result(&tables[library], x, frac_bits - (halve ? 1 : 0), bytes, mode, &ignored);
		sum += ys[i];
	}
	int64_t k = 31 - groups_bits(sum);
	int64_t mantissa = tables_within(groups_shift(sum, 16 - k, mode), -32768, 32767);
	int64_t reciprocal = tables_within(536870912 / mantissa, 0, 32767);
	int64_t end = bytes == 1 ? 127 : 32767;
	for (int64_t i = 0; i < n; i++) {
		int64_t y = groups_shift(reciprocal * ys[i], (bytes == 1 ? 38 : 30) - k, mode);
		clamped += y > end;
		ys[i] = y > end ? end : y;
	}
	return clamped;
}

static void check_call(struct calls *c, int axis, int library)
{
	const struct kernel_operand *in = &c->operands[GROUPS_IN][0];
	int64_t n = in->shape.n * in->shape.c * in->shape.h * in->shape.w, saturated = 0;
	calls_param(c, NPUMEM_PARAM_LUT, library > 0, library, 0, 0, 0);
	calls_run(c);
	for (int64_t i = 0; i < n; i++) {
		int64_t members[GROUPS_ELEMENTS_MAX], xs[GROUPS_ELEMENTS_MAX], ys[GROUPS_ELEMENTS_MAX], me = 0;
		int64_t count = groups_of(&in->shape, axis, i, members);
		for (int64_t k = 0; k < count; k++) {
			xs[k] = calls_get(c, GROUPS_IN, members[k]);
			me = members[k] == i ? k : me;
		}
		int64_t clamped = softmax_of(xs, count, in->frac_bits, npumem_dtype_bytes(in->dtype),
					     library ? library : 1, (int)c->call.rounding, ys);
		saturated += members[0] == i ? clamped : 0;
		ck_assert_int_eq(calls_get(c, GROUPS_OUT, i), ys[me]);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
}

START_TEST(random_calls)
{
	static const int axes[] = {0, GROUPS_NONE, GROUPS_C, GROUPS_H, GROUPS_W};
	uint64_t state = 51;
	for (unsigned s = 0; s < GROUPS_SHAPES; s++)
		for (unsigned a = 0; a < 5; a++)
			for (int mode = 1; mode <= 3; mode++)
				for (int library = 0; library <= 2; library++) {
					struct calls c;
					int dtype = oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
					int64_t frac_bits = oracle_random(&state) % 5
								    ? oracle_between(&state, 0, 15)
								    : oracle_between(&state, 0, 127);
					groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, dtype, frac_bits,
						      &groups_shapes[s], axes[a]);
					c.call.rounding = (enum npumem_rounding)mode;
					calls_sample(&c, GROUPS_IN, &state);
					check_call(&c, axes[a], library);
					calls_free(&c);
				}
}
END_TEST

/* A sum far beyond 2^31, which has no redundant sign bits left. */
START_TEST(many_equal_elements)
{
	struct calls c;
	groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, NPUMEM_FX16, 12, &(struct npumem_dims){2, 64, 32, 64},
		      GROUPS_NONE);
	calls_run(&c);
	for (int64_t i = 0; i < 262144; i += 1000) /* 2^-18 is below the half of 2^-15 */
		ck_assert_int_eq(calls_get(&c, GROUPS_OUT, i), 0);
	calls_free(&c);
	groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, NPUMEM_FX16, 12, &(struct npumem_dims){1, 8, 32, 64},
		      GROUPS_NONE);
	calls_run(&c);
	for (int64_t i = 0; i < 16384; i += 100) /* 2^-14 */
		ck_assert_int_eq(calls_get(&c, GROUPS_OUT, i), 2);
	calls_free(&c);
}
END_TEST

START_TEST(near_the_real_function)
{
	uint64_t state = 52;
	for (int round = 0; round < 60; round++) {
		struct calls c;
		int64_t frac_bits = oracle_between(&state, 6, 15), n = 9;
		int dtype = round % 2 ? NPUMEM_FX16 : NPUMEM_FX8;
		if (dtype == NPUMEM_FX8)
			frac_bits -= 6;
		groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, dtype, frac_bits, &(struct npumem_dims){1, n, 1, 1},
			      GROUPS_C);
		calls_param(&c, NPUMEM_PARAM_LUT, 1, round / 2 % 2 + 1, 0, 0, 0);
		int64_t end = dtype == NPUMEM_FX8 ? 60 : 20000;
		double sum = 0;
		for (int64_t i = 0; i < n; i++) {
			calls_put(&c, GROUPS_IN, i, oracle_between(&state, -end, end));
			sum += exp(ldexp((double)calls_get(&c, GROUPS_IN, i), -(int)frac_bits));
		}
		calls_run(&c);
		for (int64_t i = 0; i < n; i++) {
			double real = exp(ldexp((double)calls_get(&c, GROUPS_IN, i), -(int)frac_bits)) / sum;
			double one = dtype == NPUMEM_FX8 ? 128 : 32768;
			ck_assert_double_eq_tol((double)calls_get(&c, GROUPS_OUT, i) / one, real,
						2 / one + 0.0006);
		}
		calls_free(&c);
	}
}
END_TEST

/* 127 - -128 does not fit 8 bits: halved, the smallest is 128 half steps away. */
START_TEST(fx8_halves_a_wide_spread)
{
	struct calls c;
	groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, NPUMEM_FX8, 0, &(struct npumem_dims){1, 3, 1, 1}, GROUPS_NONE);
	calls_put(&c, GROUPS_IN, 0, 127);
	calls_put(&c, GROUPS_IN, 1, 126); /* 126 >> 1 is 127 >> 1 */
	calls_put(&c, GROUPS_IN, 2, -128);
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, GROUPS_OUT, 0), calls_get(&c, GROUPS_OUT, 1));
	check_call(&c, GROUPS_NONE, 0);
	calls_put(&c, GROUPS_IN, 2, -1); /* 128 away: fits as it is */
	calls_run(&c);
	ck_assert_int_gt(calls_get(&c, GROUPS_OUT, 0), calls_get(&c, GROUPS_OUT, 1));
	check_call(&c, GROUPS_NONE, 0);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	groups_set_up(&c, NPUMEM_KERNEL_SOFTMAX, NPUMEM_FX16, 12, &groups_shapes[1], GROUPS_W);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, GROUPS_N, 0, 0, 0);
	calls_refused(&c, "softmax: axis is n, but must be none, c, h or w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, 6, 0, 0, 0);
	calls_refused(&c, "softmax: axis is number 6, but its choices are 1 to 5: none n c h w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 0, 0, 0, 0, 0);
	calls_refused(&c, "softmax: parameter axis is missing: of n=2, none is over the whole batch; or c, h, w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, GROUPS_NONE, 0, 0, 0);
	c.operands[GROUPS_OUT][0].frac_bits = 14;
	calls_refused(&c, "softmax: out has 14 frac_bits, but must have the 15 of fx16 results in [-1, 1)");
	c.operands[GROUPS_OUT][0].frac_bits = 15;
	c.operands[GROUPS_OUT][0].dtype = NPUMEM_FX8;
	calls_refused(&c, "softmax: out is fx8, but must be fx16 as in is");
	c.operands[GROUPS_OUT][0].dtype = NPUMEM_FX16;
	c.operands[GROUPS_IN][0].dtype = NPUMEM_FP32;
	calls_refused(&c, "softmax: in is fp32, but must be fx8 or fx16");
	c.operands[GROUPS_IN][0].dtype = NPUMEM_FX16;
	c.operands[GROUPS_OUT][0].shape.h = 5;
	calls_refused(&c, "softmax: out has H 5, but in has 4");
	c.operands[GROUPS_OUT][0].shape.h = 4;
	calls_param(&c, NPUMEM_PARAM_LUT, 1, 0, 0, 0, 0);
	calls_refused(&c, "softmax: lut is number 0");
	calls_free(&c);
}
END_TEST

Suite *suite_softmax(void)
{
	Suite *suite = suite_create("device/kernels/softmax");
	TCase *tcase = tcase_create("softmax");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, many_equal_elements);
	tcase_add_test(tcase, near_the_real_function);
	tcase_add_test(tcase, fx8_halves_a_wide_spread);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
