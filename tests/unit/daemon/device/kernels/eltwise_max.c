/* eltwise_max against the oracle, with scalars and out of another format, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT };

static void set_up(struct calls *c, int dtype, int64_t in_frac_bits, int64_t out_frac_bits, int64_t w1, int64_t w2)
{
	calls_init(c, NPUMEM_KERNEL_ELTWISE_MAX);
	calls_add(c, "in1", dtype, in_frac_bits, 1, 1, 1, w1);
	calls_add(c, "in2", dtype, in_frac_bits, 1, 1, 1, w2);
	calls_add(c, "out", dtype, out_frac_bits, 1, 1, 1, w1 > w2 ? w1 : w2);
}

START_TEST(random_calls)
{
	static const int64_t widths[][2] = {{300, 300}, {1, 20}, {20, 1}, {1, 1}};
	uint64_t state = 71;
	for (int64_t shift = -9; shift <= 17; shift++)
		for (unsigned s = 0; s < 4; s++) {
			struct calls c;
			int dtype = oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
			int mode = (int)(oracle_random(&state) % 3) + 1;
			set_up(&c, dtype, 40, 40 - shift, widths[s][0], widths[s][1]);
			c.call.rounding = (enum npumem_rounding)mode;
			calls_sample(&c, IN1, &state);
			calls_sample(&c, IN2, &state);
			calls_run(&c);
			int64_t low, high, saturated = 0;
			npumem_dtype_range(dtype, &low, &high);
			for (int64_t i = 0; i < c.operands[OUT][0].shape.w; i++) {
				int64_t x1 = calls_get(&c, IN1, widths[s][0] == 1 ? 0 : i);
				int64_t x2 = calls_get(&c, IN2, widths[s][1] == 1 ? 0 : i);
				int64_t want = oracle_result(oracle_of(x1 < x2 ? x2 : x1), shift, mode, low, high,
							     &saturated);
				ck_assert_int_eq(calls_get(&c, OUT, i), want);
			}
			ck_assert_int_eq(c.call.counts.saturated, saturated);
			calls_free(&c);
		}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in1", 't', NPUMEM_UINT8, .text = "eltwise_max: in1 is uint8, but must be fx8 or fx16"},
		{"in1", 'f', 4, .text = "eltwise_max: in2 has 5 frac_bits, but must have the 4 of in1"},
		{"in2", 'f', 6, .text = "eltwise_max: in2 has 6 frac_bits, but must have the 5 of in1"},
		{"in2", 't', NPUMEM_INT8, .text = "eltwise_max: in2 is int8, but must be fx8 as in1 is"},
		{"in2", 'w', 2, .text = "eltwise_max: in2 has W 2, but in1, which is no scalar, has 300"},
		{"out", 't', NPUMEM_FX16, .text = "eltwise_max: out is fx16, but must be fx8 as in1 is"},
		{"out", 'h', 2, .text = "eltwise_max: out has H 2, but in1 has 1"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX8, 5, 5, 300, 300);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_eltwise_max(void)
{
	Suite *suite = suite_create("device/kernels/eltwise_max");
	TCase *tcase = tcase_create("eltwise_max");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
