/* eltwise_sub: the order of its operands, against the oracle in near and far formats, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT };

static void set_up(struct calls *c, int dtype, const int64_t frac_bits[3], int64_t w1, int64_t w2)
{
	int64_t h1 = w1 > 1 ? 2 : 1, h2 = w2 > 1 ? 2 : 1;
	calls_init(c, NPUMEM_KERNEL_ELTWISE_SUB);
	calls_add(c, "in1", dtype, frac_bits[IN1], 1, 1, h1, w1);
	calls_add(c, "in2", dtype, frac_bits[IN2], 1, 1, h2, w2);
	calls_add(c, "out", dtype, frac_bits[OUT], 1, 1, h1 > h2 ? h1 : h2, w1 > w2 ? w1 : w2);
}

START_TEST(random_calls)
{
	static const int64_t formats[][3] = {{7, 7, 7},	 {4, 9, 6},  {9, 4, 12},
					     {0, 15, 3}, {31, 0, 1}, {0, 127, 0}};
	static const int64_t widths[][2] = {{131, 131}, {1, 20}, {20, 1}, {1, 1}};
	uint64_t state = 141;
	for (unsigned f = 0; f < 6; f++)
		for (unsigned s = 0; s < 4; s++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				set_up(&c, oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16, formats[f],
				       widths[s][0], widths[s][1]);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN1, &state);
				calls_sample(&c, IN2, &state);
				calls_run(&c);
				int64_t f1 = formats[f][IN1], f2 = formats[f][IN2], most = f1 > f2 ? f1 : f2;
				int64_t low, high, saturated = 0;
				npumem_dtype_range(c.operands[OUT][0].dtype, &low, &high);
				const struct npumem_dims *out = &c.operands[OUT][0].shape;
				for (int64_t i = 0; i < out->h * out->w; i++) {
					int64_t x1 = calls_get(&c, IN1, widths[s][0] == 1 ? 0 : i);
					int64_t x2 = calls_get(&c, IN2, widths[s][1] == 1 ? 0 : i);
					struct oracle difference =
						oracle_subtract(oracle_double(oracle_of(x1), most - f1),
								oracle_double(oracle_of(x2), most - f2));
					ck_assert_int_eq(calls_get(&c, OUT, i),
							 oracle_result(difference, most - formats[f][OUT], mode,
								       low, high, &saturated));
				}
				ck_assert_int_eq(c.call.counts.saturated, saturated);
				calls_free(&c);
			}
}
END_TEST

/* The lowest value has no opposite in its container. */
START_TEST(ends_of_the_container)
{
	static const int8_t pairs[][3] = {{0, -128, 127},  {-1, -128, 127},  {-2, -128, 126}, {-128, 1, -128},
					  {-128, -128, 0}, {127, -128, 127}, {5, 7, -2}};
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_ELTWISE_SUB);
	int8_t *in1 = calls_add(&c, "in1", NPUMEM_FX8, 7, 1, 1, 1, 7);
	int8_t *in2 = calls_add(&c, "in2", NPUMEM_FX8, 7, 1, 1, 1, 7);
	int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 7, 1, 1, 1, 7);
	for (int i = 0; i < 7; i++) {
		in1[i] = pairs[i][0];
		in2[i] = pairs[i][1];
	}
	calls_run(&c);
	for (int i = 0; i < 7; i++)
		ck_assert_int_eq(out[i], pairs[i][2]);
	ck_assert_int_eq(c.call.counts.saturated, 3);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in1", 't', NPUMEM_INT16, .text = "eltwise_sub: in1 is int16, but must be fx8 or fx16"},
		{"in2", 't', NPUMEM_FX8, .text = "eltwise_sub: in2 is fx8, but must be fx16 as in1 is"},
		{"out", 't', NPUMEM_INT16, .text = "eltwise_sub: out is int16, but must be fx16 as in1 is"},
		{"in2", 'h', 1, .text = "eltwise_sub: in2 has H 1, but in1, which is no scalar, has 2"},
		{"out", 'w', 299, .text = "eltwise_sub: out has W 299, but in1 has 300"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX16, (const int64_t[3]){1, 2, 3}, 300, 300);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_eltwise_sub(void)
{
	Suite *suite = suite_create("device/kernels/eltwise_sub");
	TCase *tcase = tcase_create("eltwise_sub");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, ends_of_the_container);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
