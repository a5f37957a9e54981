/* prelu along each axis against the oracle, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, SLOPE, OUT };
enum { AXIS_NONE = 1, AXIS_N, AXIS_C, AXIS_H, AXIS_W };

static void set_up(struct calls *c, int dtype, int64_t axis, const struct npumem_dims *in, int64_t slope_frac_bits)
{
	calls_init(c, NPUMEM_KERNEL_PRELU);
	calls_add(c, "in", dtype, 9, in->n, in->c, in->h, in->w);
	calls_add(c, "slope", dtype, slope_frac_bits, 1, axis == AXIS_C ? in->c : 1, axis == AXIS_H ? in->h : 1,
		  axis == AXIS_W ? in->w : 1);
	calls_add(c, "out", dtype, 9, in->n, in->c, in->h, in->w);
	calls_param(c, NPUMEM_PARAM_AXIS, 1, axis, 0, 0, 0);
}

static void check_against_oracle(struct calls *c, int64_t axis)
{
	calls_run(c);
	const struct npumem_dims *in = &c->operands[IN][0].shape;
	int64_t low, high, saturated = 0, i = 0;
	npumem_dtype_range(c->operands[IN][0].dtype, &low, &high);
	for (int64_t n = 0; n < in->n; n++)
		for (int64_t ch = 0; ch < in->c; ch++)
			for (int64_t h = 0; h < in->h; h++)
				for (int64_t w = 0; w < in->w; w++, i++) {
					int64_t at = axis == AXIS_C ? ch : axis == AXIS_H ? h : w;
					int64_t x = calls_get(c, IN, i), slope = calls_get(c, SLOPE, at);
					int64_t want =
						x >= 0 ? x
						       : oracle_result(oracle_of(x * slope),
								       c->operands[SLOPE][0].frac_bits,
								       c->call.rounding, low, high, &saturated);
					if (calls_get(c, OUT, i) != want)
						ck_abort_msg("[%lld,%lld,%lld,%lld] is %lld, not %lld",
							     (long long)n, (long long)ch, (long long)h,
							     (long long)w, (long long)calls_get(c, OUT, i),
							     (long long)want);
				}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
}

START_TEST(random_calls)
{
	static const struct npumem_dims shapes[] = {{2, 3, 4, 5}, {1, 1, 1, 1}, {2, 7, 11, 13}, {1, 300, 1, 2}};
	static const int64_t formats[] = {0, 6, 15, 127};
	uint64_t state = 131;
	for (unsigned s = 0; s < 4; s++)
		for (int64_t axis = AXIS_C; axis <= AXIS_W; axis++)
			for (unsigned f = 0; f < 4; f++)
				for (int mode = 1; mode <= 3; mode++) {
					struct calls c;
					set_up(&c, oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16, axis,
					       &shapes[s], formats[f]);
					if (axis == AXIS_C && mode == 1) /* the default */
						calls_param(&c, NPUMEM_PARAM_AXIS, 0, 0, 0, 0, 0);
					c.call.rounding = (enum npumem_rounding)mode;
					calls_sample(&c, IN, &state);
					calls_sample(&c, SLOPE, &state);
					check_against_oracle(&c, axis);
					calls_free(&c);
				}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_INT8, .text = "prelu: in is int8, but must be fx8 or fx16"},
		{"in", 'c', 3, .text = "prelu: slope has C 2, but must have 3"},
		{"slope", 't', NPUMEM_FX16, .text = "prelu: slope is fx16, but must be fx8 as in is"},
		{"slope", 'c', 1, .text = "prelu: slope has C 1, but must have 2"},
		{"slope", 'h', 3, .text = "prelu: slope has H 3, but must have 1"},
		{"out", 'f', 5, .text = "prelu: out has 5 frac_bits, but must have the 9 of in"},
		{"out", 'n', 1, .text = "prelu: out has N 1, but in has 2"},
		{.param = NPUMEM_PARAM_AXIS,
		 .n_values = 1,
		 .values = {AXIS_NONE},
		 .text = "prelu: axis is none, but must be c, h or w"},
		{.param = NPUMEM_PARAM_AXIS,
		 .n_values = 1,
		 .values = {AXIS_N},
		 .text = "prelu: axis is n, but must be c, h or w"},
		{.param = NPUMEM_PARAM_AXIS,
		 .n_values = 1,
		 .values = {AXIS_H},
		 .text = "prelu: slope has C 2, but must have 1"},
		{.param = NPUMEM_PARAM_AXIS,
		 .n_values = 1,
		 .values = {6},
		 .text = "prelu: axis is number 6, but its choices are 1 to 5: none n c h w"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX8, AXIS_C, &(struct npumem_dims){2, 2, 3, 300}, 7);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_prelu(void)
{
	Suite *suite = suite_create("device/kernels/prelu");
	TCase *tcase = tcase_create("prelu");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
