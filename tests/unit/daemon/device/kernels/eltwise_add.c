/* eltwise_add in formats 0 to 127 bits apart, with scalars on either side, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT };

static void set_up(struct calls *c, int dtype, const int64_t frac_bits[3], int64_t w1, int64_t w2)
{
	int64_t w = w1 > w2 ? w1 : w2;
	calls_init(c, NPUMEM_KERNEL_ELTWISE_ADD);
	calls_add(c, "in1", dtype, frac_bits[IN1], 1, w1 > 1 ? 2 : 1, 1, w1);
	calls_add(c, "in2", dtype, frac_bits[IN2], 1, w2 > 1 ? 2 : 1, 1, w2);
	calls_add(c, "out", dtype, frac_bits[OUT], 1, w > 1 ? 2 : 1, 1, w);
}

static void check_against_oracle(struct calls *c)
{
	calls_run(c);
	int64_t f1 = c->operands[IN1][0].frac_bits, f2 = c->operands[IN2][0].frac_bits;
	int64_t f = f1 > f2 ? f1 : f2, low, high, saturated = 0;
	npumem_dtype_range(c->operands[OUT][0].dtype, &low, &high);
	int64_t n = (int64_t)(calls_bytes(&c->operands[OUT][0]) / npumem_dtype_bytes(c->operands[OUT][0].dtype));
	for (int64_t i = 0; i < n; i++) {
		int64_t x1 = calls_get(c, IN1, c->operands[IN1][0].shape.w == 1 ? 0 : i);
		int64_t x2 = calls_get(c, IN2, c->operands[IN2][0].shape.w == 1 ? 0 : i);
		struct oracle sum =
			oracle_add(oracle_double(oracle_of(x1), f - f1), oracle_double(oracle_of(x2), f - f2));
		int64_t want = oracle_result(sum, f - c->operands[OUT][0].frac_bits, c->call.rounding, low, high,
					     &saturated);
		if (calls_get(c, OUT, i) != want)
			ck_abort_msg("%lld Q.%lld + %lld Q.%lld in Q.%lld is %lld, not %lld", (long long)x1,
				     (long long)f1, (long long)x2, (long long)f2,
				     (long long)c->operands[OUT][0].frac_bits, (long long)calls_get(c, OUT, i),
				     (long long)want);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
	ck_assert_int_eq(c->call.counts.macs, 0);
}

START_TEST(random_calls)
{
	static const int64_t formats[][3] = {{7, 7, 7},	    {7, 7, 4},	   {4, 9, 6},	{9, 4, 12},    {0, 14, 3},
					     {0, 15, 3},    {31, 0, 1},	   {0, 32, 1},	{127, 0, 127}, {0, 127, 0},
					     {127, 90, 90}, {127, 127, 0}, {0, 0, 127}, {100, 60, 59}};
	uint64_t state = 51;
	for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int mode = 1; mode <= 3; mode++)
			for (int scalar = 0; scalar <= 3; scalar++) {
				struct calls c;
				int64_t w = f == 0 ? 131 : 12; /* around a block, twice */
				set_up(&c, oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16, formats[f],
				       scalar & 1 ? 1 : w, scalar & 2 ? 1 : w);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN1, &state);
				calls_sample(&c, IN2, &state);
				check_against_oracle(&c);
				calls_free(&c);
			}
}
END_TEST

/* Every pair of fx8 values: a plain saturating sum. */
START_TEST(every_pair)
{
	struct calls c;
	calls_init(&c, NPUMEM_KERNEL_ELTWISE_ADD);
	int8_t *in1 = calls_add(&c, "in1", NPUMEM_FX8, 7, 1, 1, 256, 256);
	int8_t *in2 = calls_add(&c, "in2", NPUMEM_FX8, 7, 1, 1, 256, 256);
	int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 7, 1, 1, 256, 256);
	for (int i = 0; i < 65536; i++) {
		in1[i] = (int8_t)(i / 256 - 128);
		in2[i] = (int8_t)(i % 256 - 128);
	}
	calls_run(&c);
	int64_t saturated = 0;
	for (int i = 0; i < 65536; i++) {
		int sum = in1[i] + in2[i], want = sum < -128 ? -128 : sum > 127 ? 127 : sum;
		saturated += want != sum;
		if (out[i] != want)
			ck_abort_msg("%d + %d is %d", in1[i], in2[i], out[i]);
	}
	ck_assert_int_eq(c.call.counts.saturated, saturated);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in1", 't', NPUMEM_INT8, .text = "eltwise_add: in1 is int8, but must be fx8 or fx16"},
		{"in2", 't', NPUMEM_FX8, .text = "eltwise_add: in2 is fx8, but must be fx16 as in1 is"},
		{"out", 't', NPUMEM_INT16, .text = "eltwise_add: out is int16, but must be fx16 as in1 is"},
		{"in2", 'w', 4, .text = "eltwise_add: in2 has W 4, but in1, which is no scalar, has 150"},
		{"out", 'c', 1, .text = "eltwise_add: out has C 1, but in1 has 2"},
	};
	struct calls c;
	set_up(&c, NPUMEM_FX16, (const int64_t[3]){1, 2, 3}, 150, 150);
	ck_assert(c.kernel->in_place);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	c.operands[IN2][0].shape = (struct npumem_dims){1, 1, 1, 1};
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[OUT][0].shape.c = 1;
	calls_refused(&c, "eltwise_add: out has C 1, but in1 has 2");
	c.operands[IN2][0].shape = c.operands[IN1][0].shape;
	c.operands[IN1][0].shape = (struct npumem_dims){1, 1, 1, 1};
	calls_refused(&c, "eltwise_add: out has C 1, but in2 has 2");
	calls_free(&c);
}
END_TEST

Suite *suite_eltwise_add(void)
{
	Suite *suite = suite_create("device/kernels/eltwise_add");
	TCase *tcase = tcase_create("eltwise_add");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, every_pair);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
