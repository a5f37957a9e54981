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
					ck_assert_int_eq(calls_get(&c, OUT, i), x < low	   ? low
										: x > high ? high
											   : x);
				}
				ck_assert_int_eq(c.call.counts.saturated, 0);
				ck_assert_int_eq(c.call.counts.macs, 0);
				calls_free(&c);
			}
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_RELU);
	calls_add(&c, "in", NPUMEM_FX16, 12, 1, 2, 3, 4);
	calls_add(&c, "out", NPUMEM_FX16, 12, 1, 2, 3, 4);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[OUT][0].frac_bits = 11;
	calls_refused(&c, "relu: out has 11 frac_bits, but must have the 12 of in");
	c.operands[OUT][0].frac_bits = 12;
	c.operands[OUT][0].dtype = NPUMEM_FX8;
	calls_refused(&c, "relu: out is fx8, but must be fx16 as in is");
	c.operands[IN][0].dtype = NPUMEM_FP32;
	calls_refused(&c, "relu: in is fp32, but must be fx8 or fx16");
	c.operands[IN][0].dtype = c.operands[OUT][0].dtype = NPUMEM_FX16;
	c.operands[OUT][0].shape.w = 5;
	calls_refused(&c, "relu: out has W 5, but in has 4");
	c.operands[OUT][0].shape.w = 4;
	calls_param(&c, NPUMEM_PARAM_RELU, 1, -1, 0, 0, 0);
	calls_refused(&c, "relu: relu is number -1, but its choices are 1 to 4: none gen 1 6");
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
