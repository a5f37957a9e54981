/* l2_normalize against its rules written out, and against the real function; refusals. */
#include "tests/unit/daemon/device/kernels/groups.h"

static int64_t norm_of(const int64_t *xs, int64_t n, int mode, int64_t *ys)
{
	static struct tables table;
	if (table.size == 0)
		table = tables_of(TABLES_INVSQRT, 1);
	int64_t sum = 0, clamped = 0;
	for (int64_t i = 0; i < n; i++)
		sum += xs[i] * xs[i];
	int64_t shift = 48 - (63 - groups_bits(sum));
	while (shift % 2 != 0)
		shift++;
	int64_t mantissa = tables_within(groups_shift(sum, shift, mode), -32768, 32767);
	int64_t factor = tables_read(&table, mantissa, 8, mode);
	for (int64_t i = 0; i < n; i++) {
		int64_t y = groups_shift(xs[i] * factor, 17 + (shift + 8) / 2 - 15, mode);
		clamped += y > 32767 || y < -32768;
		ys[i] = tables_within(y, -32768, 32767);
	}
	return clamped;
}

static void check_call(struct calls *c, int axis)
{
	const struct npumem_dims *s = &c->operands[GROUPS_IN][0].shape;
	int64_t n = s->n * s->c * s->h * s->w, saturated = 0;
	calls_run(c);
	for (int64_t i = 0; i < n; i++) {
		int64_t members[GROUPS_ELEMENTS_MAX], xs[GROUPS_ELEMENTS_MAX], ys[GROUPS_ELEMENTS_MAX], me = 0;
		int64_t count = groups_of(s, axis, i, members);
		double length = 0;
		for (int64_t k = 0; k < count; k++) {
			xs[k] = calls_get(c, GROUPS_IN, members[k]);
			length += (double)xs[k] * (double)xs[k];
			me = members[k] == i ? k : me;
		}
		int64_t clamped = norm_of(xs, count, (int)c->call.rounding, ys);
		saturated += members[0] == i ? clamped : 0;
		ck_assert_int_eq(calls_get(c, GROUPS_OUT, i), ys[me]);
		if (length > 0)
			ck_assert_double_eq_tol((double)ys[me] / 32768, (double)xs[me] / sqrt(length), 0.0005);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
	ck_assert_int_eq(c->call.counts.macs, n);
}

START_TEST(random_calls)
{
	static const int axes[] = {0, GROUPS_NONE, GROUPS_C, GROUPS_H, GROUPS_W};
	uint64_t state = 61;
	for (unsigned s = 0; s < GROUPS_SHAPES; s++)
		for (unsigned a = 0; a < 5; a++)
			for (int mode = 1; mode <= 3; mode++)
				for (int bits = 0; bits <= 15; bits += 5) {
					struct calls c;
					groups_set_up(&c, NPUMEM_KERNEL_L2_NORMALIZE, NPUMEM_FX16, 3,
						      &groups_shapes[s], axes[a]);
					c.call.rounding = (enum npumem_rounding)mode;
					int64_t n = groups_shapes[s].n * groups_shapes[s].c * groups_shapes[s].h *
						    groups_shapes[s].w;
					for (int64_t i = 0; i < n; i++)
						calls_put(&c, GROUPS_IN, i,
							  oracle_sample(&state, -(1 << bits), (1 << bits) - 1));
					check_call(&c, axes[a]);
					calls_free(&c);
				}
}
END_TEST

/* A lone value is 1.0, which the container does not have; nothing but zeros stays so. */
START_TEST(ends)
{
	for (int mode = 1; mode <= 3; mode++)
		for (int64_t x = -32768; x <= 32767; x += x > -40 && x < 40 ? 1 : 39) {
			struct calls c;
			groups_set_up(&c, NPUMEM_KERNEL_L2_NORMALIZE, NPUMEM_FX16, 0, &groups_shapes[0],
				      GROUPS_NONE);
			c.call.rounding = (enum npumem_rounding)mode;
			calls_put(&c, GROUPS_IN, 0, x);
			check_call(&c, GROUPS_NONE);
			calls_free(&c);
		}
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	groups_set_up(&c, NPUMEM_KERNEL_L2_NORMALIZE, NPUMEM_FX16, 12, &groups_shapes[1], GROUPS_W);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[GROUPS_IN][0].dtype = c.operands[GROUPS_OUT][0].dtype = NPUMEM_FX8;
	c.operands[GROUPS_OUT][0].frac_bits = 7;
	calls_refused(&c, "l2_normalize: in is fx8, but must be fx16");
	c.operands[GROUPS_IN][0].dtype = c.operands[GROUPS_OUT][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "l2_normalize: out has 7 frac_bits, but must have the 15 of fx16 results in [-1, 1)");
	c.operands[GROUPS_OUT][0].frac_bits = 15;
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, GROUPS_N, 0, 0, 0);
	calls_refused(&c, "l2_normalize: axis is n, but must be none, c, h or w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 0, 0, 0, 0, 0);
	calls_refused(&c,
		      "l2_normalize: parameter axis is missing: of n=2, none is over the whole batch; or c, h, w");
	calls_param(&c, NPUMEM_PARAM_AXIS, 1, GROUPS_NONE, 0, 0, 0);
	c.operands[GROUPS_OUT][0].shape.n = 1;
	calls_refused(&c, "l2_normalize: out has N 1, but in has 2");
	c.operands[GROUPS_IN][0].shape.c = c.operands[GROUPS_OUT][0].shape.c = INT64_C(1) << 33;
	c.operands[GROUPS_OUT][0].shape.n = 2;
	calls_refused(&c, "l2_normalize: a group would sum 343597383680 squares, more than 4294967296");
	calls_free(&c);
}
END_TEST

Suite *suite_l2_normalize(void)
{
	Suite *suite = suite_create("device/kernels/l2_normalize");
	TCase *tcase = tcase_create("l2_normalize");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, ends);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
