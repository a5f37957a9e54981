/* mac: acc + in1 * in2 exactly, rounded once, in formats up to 254 bits apart, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT, ACC };

/* Types and frac_bits of in1, in2 and acc, which out shares. */
struct formats {
	int dtype[3];
	int64_t frac_bits[3];
};

static void set_up(struct calls *c, const struct formats *f, int64_t w1, int64_t w2, int64_t w)
{
	calls_init(c, NPUMEM_KERNEL_MAC);
	calls_add(c, "in1", f->dtype[0], f->frac_bits[0], 1, 1, 1, w1);
	calls_add(c, "in2", f->dtype[1], f->frac_bits[1], 1, 1, 1, w2);
	calls_add(c, "acc", f->dtype[2], f->frac_bits[2], 1, 1, 1, w);
	calls_add(c, "out", f->dtype[2], f->frac_bits[2], 1, 1, 1, w);
}

static void check_against_oracle(struct calls *c)
{
	calls_run(c);
	int64_t f = c->operands[ACC][0].frac_bits, low, high, saturated = 0;
	int64_t product_f = c->operands[IN1][0].frac_bits + c->operands[IN2][0].frac_bits;
	int64_t fine = f > product_f ? f : product_f, w = c->operands[OUT][0].shape.w;
	npumem_dtype_range(c->operands[OUT][0].dtype, &low, &high);
	for (int64_t i = 0; i < w; i++) {
		int64_t x1 = calls_get(c, IN1, c->operands[IN1][0].shape.w == 1 ? 0 : i);
		int64_t x2 = calls_get(c, IN2, c->operands[IN2][0].shape.w == 1 ? 0 : i);
		int64_t acc = calls_get(c, ACC, i);
		struct oracle sum = oracle_add(oracle_double(oracle_of(acc), fine - f),
					       oracle_double(oracle_of(x1 * x2), fine - product_f));
		int64_t want = oracle_result(sum, fine - f, c->call.rounding, low, high, &saturated);
		if (calls_get(c, OUT, i) != want)
			ck_abort_msg("%lld Q.%lld + %lld * %lld Q.%lld is %lld, not %lld", (long long)acc,
				     (long long)f, (long long)x1, (long long)x2, (long long)product_f,
				     (long long)calls_get(c, OUT, i), (long long)want);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
	ck_assert_int_eq(c->call.counts.macs, w);
}

START_TEST(random_calls)
{
	static const int64_t frac_bits[][3] = {{7, 7, 7},   {3, 4, 7},	   {10, 12, 6},	    {0, 0, 3},
					       {15, 15, 0}, {16, 16, 0},   {0, 0, 31},	    {0, 0, 32},
					       {0, 0, 127}, {127, 127, 0}, {127, 127, 127}, {20, 11, 0},
					       {20, 12, 0}, {90, 20, 100}, {0, 9, 60}};
	uint64_t state = 691;
	for (unsigned f = 0; f < sizeof(frac_bits) / sizeof(frac_bits[0]); f++)
		for (int types = 0; types < 8; types++)
			for (int mode = 1; mode <= 3; mode++) {
				struct formats formats;
				for (int i = 0; i < 3; i++) {
					formats.dtype[i] = types >> i & 1 ? NPUMEM_FX16 : NPUMEM_FX8;
					formats.frac_bits[i] = frac_bits[f][i];
				}
				struct calls c;
				int64_t w = f == 0 ? 262 : 20;
				set_up(&c, &formats, oracle_random(&state) % 3 ? w : 1,
				       oracle_random(&state) % 3 ? w : 1, w);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN1, &state);
				calls_sample(&c, IN2, &state);
				calls_sample(&c, ACC, &state);
				check_against_oracle(&c);
				calls_free(&c);
			}
}
END_TEST

/* 1 + 0.5 is a tie, 1 + (0.5 and a little) is none: were the product rounded by itself, both would be alike. */
START_TEST(one_rounding)
{
	struct calls c;
	const struct formats formats = {{NPUMEM_FX16, NPUMEM_FX16, NPUMEM_FX8}, {4, 4, 0}};
	set_up(&c, &formats, 4, 1, 4);
	static const int64_t in1[] = {128, 129, -128, -129}, want[] = {2, 2, 0, 0};
	for (int64_t i = 0; i < 4; i++) {
		calls_put(&c, IN1, i, in1[i]);
		calls_put(&c, ACC, i, 1);
	}
	calls_put(&c, IN2, 0, 1);
	calls_run(&c);
	for (int64_t i = 0; i < 4; i++)
		ck_assert_int_eq(calls_get(&c, OUT, i), want[i]);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		unsigned role;
		int dtype;
		int64_t frac_bits, w;
		const char *text;
	} rows[] = {
		{IN1, NPUMEM_INT16, 3, 5, "mac: in1 is int16, but must be fx8 or fx16"},
		{IN2, NPUMEM_FP32, 4, 5, "mac: in2 is fp32, but must be fx8 or fx16"},
		{ACC, NPUMEM_INT32, 7, 5, "mac: acc is int32, but must be fx8 or fx16"},
		{OUT, NPUMEM_FX8, 7, 5, "mac: out is fx8, but must be fx16 as acc is"},
		{OUT, NPUMEM_FX16, 6, 5, "mac: out has 6 frac_bits, but must have the 7 of acc"},
		{IN1, NPUMEM_FX16, 3, 4, "mac: in1 has W 4, but out has 5"},
		{IN2, NPUMEM_FX16, 4, 6, "mac: in2 has W 6, but out has 5"},
		{ACC, NPUMEM_FX16, 7, 1, "mac: acc has W 1, but out has 5"},
		{OUT, NPUMEM_FX16, 7, 4, "mac: in1 has W 5, but out has 4"},
	};
	const struct formats formats = {{NPUMEM_FX16, NPUMEM_FX16, NPUMEM_FX16}, {3, 4, 7}};
	struct calls c;
	set_up(&c, &formats, 5, 5, 5);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kernel_operand *operand = &c.operands[rows[i].role][0], was = *operand;
		operand->dtype = rows[i].dtype;
		operand->frac_bits = rows[i].frac_bits;
		operand->shape.w = rows[i].w;
		calls_refused(&c, rows[i].text);
		*operand = was;
	}
	calls_free(&c);
}
END_TEST

Suite *suite_mac(void)
{
	Suite *suite = suite_create("device/kernels/mac");
	TCase *tcase = tcase_create("mac");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, one_rounding);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
