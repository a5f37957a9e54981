/* relu: every choice over every value of the containers, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, OUT };

START_TEST(every_value)
{
	static const int64_t frac_bits[] = {0, 7, 13, 127};
	for (unsigned f = 0; f < sizeof(frac_bits) / sizeof(frac_bits[0]); f++)
		for (int64_t relu = 0; relu <= 4; relu++)
			for (int bits = 8; bits <= 16; bits += 8) {
				int64_t n = INT64_C(1) << bits;
				struct calls c;
				calls_init(&c, NPUMEM_KERNEL_RELU);
				int dtype = bits == 8 ? NPUMEM_FX8 : NPUMEM_FX16;
				calls_add(&c, "in", dtype, frac_bits[f], 2, n / 4, 1, 2);
				calls_add(&c, "out", dtype, frac_bits[f], 2, n / 4, 1, 2);
				calls_param(&c, NPUMEM_PARAM_RELU, relu > 0, relu, 0, 0, 0);
				for (int64_t i = 0; i < n; i++)
					calls_put(&c, IN, i, i - n / 2);
				calls_run(&c);
				int64_t low = calls_relu(-n / 2, relu, frac_bits[f], -n / 2, n / 2 - 1);
				int64_t high = calls_relu(n / 2 - 1, relu, frac_bits[f], -n / 2, n / 2 - 1);
				for (int64_t i = 0; i < n; i++) {
					int64_t x = i - n / 2;
					int64_t want = x < low ? low : x > high ? high : x;
					if (calls_get(&c, OUT, i) != want)
						ck_abort_msg("%lld becomes %lld, not %lld", (long long)x,
							     (long long)calls_get(&c, OUT, i), (long long)want);
				}
				ck_assert_int_eq(c.call.counts.saturated, 0);
				ck_assert_int_eq(c.call.counts.macs, 0);
				calls_free(&c);
			}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_FP32, .text = "relu: in is fp32, but must be fx8 or fx16"},
		{"in", 'f', 13, .text = "relu: out has 12 frac_bits, but must have the 13 of in"},
		{"out", 'f', 11, .text = "relu: out has 11 frac_bits, but must have the 12 of in"},
		{"out", 't', NPUMEM_FX8, .text = "relu: out is fx8, but must be fx16 as in is"},
		{"out", 'w', 5, .text = "relu: out has W 5, but in has 400"},
		{.param = NPUMEM_PARAM_RELU,
		 .n_values = 1,
		 .values = {-1},
		 .text = "relu: relu is number -1, but its choices are 1 to 4: none gen 1 6"},
	};
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_RELU);
	calls_add(&c, "in", NPUMEM_FX16, 12, 1, 2, 3, 400);
	calls_add(&c, "out", NPUMEM_FX16, 12, 1, 2, 3, 400);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_relu(void)
{
	Suite *suite = suite_create("device/kernels/relu");
	TCase *tcase = tcase_create("relu");
	tcase_add_test(tcase, every_value);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
