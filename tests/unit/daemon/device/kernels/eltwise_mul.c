/* eltwise_mul: every pair of fx8 values, formats from 0 to 127, scalars on either side, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT };

static void set_up(struct calls *c, int dtype, const int64_t frac_bits[3], int64_t w1, int64_t w2)
{
	calls_init(c, NPUMEM_KERNEL_ELTWISE_MUL);
	calls_add(c, "in1", dtype, frac_bits[IN1], 1, w1 > 1 ? 2 : 1, 1, w1);
	calls_add(c, "in2", dtype, frac_bits[IN2], 1, w2 > 1 ? 2 : 1, 1, w2);
	calls_add(c, "out", dtype, frac_bits[OUT], 1, w1 > 1 || w2 > 1 ? 2 : 1, 1, w1 > w2 ? w1 : w2);
}

static void check_against_oracle(struct calls *c)
{
	calls_run(c);
	const struct kernel_operand *in1 = c->operands[IN1], *in2 = c->operands[IN2], *out = c->operands[OUT];
	int64_t shift = in1->frac_bits + in2->frac_bits - out->frac_bits, low, high, saturated = 0;
	npumem_dtype_range(out->dtype, &low, &high);
	for (int64_t i = 0; i < out->shape.c * out->shape.w; i++) {
		int64_t x1 = calls_get(c, IN1, in1->shape.w == 1 ? 0 : i);
		int64_t x2 = calls_get(c, IN2, in2->shape.w == 1 ? 0 : i);
		int64_t want = oracle_result(oracle_multiply(oracle_of(x1), x2), shift, c->call.rounding, low,
					     high, &saturated);
		if (calls_get(c, OUT, i) != want)
			ck_abort_msg("%lld * %lld by %lld places is %lld, not %lld", (long long)x1, (long long)x2,
				     (long long)shift, (long long)calls_get(c, OUT, i), (long long)want);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
}

START_TEST(random_calls)
{
	static const int64_t formats[][3] = {{7, 7, 7},	    {15, 15, 15}, {3, 4, 8},   {0, 0, 0},  {0, 0, 127},
					     {127, 127, 0}, {12, 3, 0},	  {16, 16, 0}, {20, 12, 1}};
	static const int64_t widths[][2] = {{150, 150}, {1, 20}, {20, 1}, {1, 1}};
	uint64_t state = 151;
	for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (unsigned s = 0; s < 4; s++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				set_up(&c, oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16, formats[f],
				       widths[s][0], widths[s][1]);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN1, &state);
				calls_sample(&c, IN2, &state);
				check_against_oracle(&c);
				calls_free(&c);
			}
}
END_TEST

/* Q.7 times Q.7 in Q.7, by the definition of each mode. */
START_TEST(every_pair)
{
	for (int mode = 1; mode <= 3; mode++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_ELTWISE_MUL);
		int8_t *in1 = calls_add(&c, "in1", NPUMEM_FX8, 7, 1, 1, 256, 256);
		int8_t *in2 = calls_add(&c, "in2", NPUMEM_FX8, 7, 1, 1, 256, 256);
		int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 7, 1, 1, 256, 256);
		c.call.rounding = (enum npumem_rounding)mode;
		for (int i = 0; i < 65536; i++) {
			in1[i] = (int8_t)(i / 256 - 128);
			in2[i] = (int8_t)(i % 256 - 128);
		}
		calls_run(&c);
		for (int i = 0; i < 65536; i++) {
			int product = in1[i] * in2[i], floor = (product + 32768) / 128 - 256,
			    rest = product - floor * 128;
			bool up = rest > 64 ||
				  (rest == 64 && (mode == NPUMEM_UP || (mode == NPUMEM_NEAREST && product > 0) ||
						  (mode == NPUMEM_CONVERGENT && floor % 2 != 0)));
			int want = floor + up > 127 ? 127 : floor + up;
			if (out[i] != want)
				ck_abort_msg("%d * %d is %d, not %d", in1[i], in2[i], out[i], want);
		}
		ck_assert_int_eq(c.call.counts.saturated, 1); /* -1 * -1 */
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in1", 't', NPUMEM_UINT16, .text = "eltwise_mul: in1 is uint16, but must be fx8 or fx16"},
		{"in2", 't', NPUMEM_FX16, .text = "eltwise_mul: in2 is fx16, but must be fx8 as in1 is"},
		{"out", 't', NPUMEM_FX16, .text = "eltwise_mul: out is fx16, but must be fx8 as in1 is"},
		{"in1", 'c', 1, .text = "eltwise_mul: in2 has C 2, but in1, which is no scalar, has 1"},
		{"out", 'n', 2, .text = "eltwise_mul: out has N 2, but in1 has 1"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX8, (const int64_t[3]){1, 2, 3}, 300, 300);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_eltwise_mul(void)
{
	Suite *suite = suite_create("device/kernels/eltwise_mul");
	TCase *tcase = tcase_create("eltwise_mul");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, every_pair);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
