/* eltwise_div: long division of magnitudes in formats up to 254 bits apart, every pair of fx8, division by zero.
 */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN1, IN2, OUT };

static void set_up(struct calls *c, int dtype, const int64_t frac_bits[3], int64_t w1, int64_t w2)
{
	calls_init(c, NPUMEM_KERNEL_ELTWISE_DIV);
	calls_add(c, "in1", dtype, frac_bits[IN1], 1, 1, 1, w1);
	calls_add(c, "in2", dtype, frac_bits[IN2], 1, 1, 1, w2);
	calls_add(c, "out", dtype, frac_bits[OUT], 1, 1, 1, w1 > w2 ? w1 : w2);
}

/* What a quotient of magnitude `q`, with a rest that compares to half of the divisor as `to_half` says, rounds to.
 */
static int64_t round_magnitude(int64_t q, int to_half, bool negative, int mode)
{
	bool away = to_half > 0;
	if (to_half == 0)
		away = mode == ORACLE_CONVERGENT ? q % 2 == 1 : mode == ORACLE_UP ? !negative : true;
	return negative ? -(q + away) : q + away;
}

/* By trial of every bit of the quotient, which is left at 2^17 where it has more. */
static int64_t long_division(int64_t x1, int64_t x2, int64_t shift, int mode)
{
	struct oracle dividend = oracle_double(oracle_of(x1 < 0 ? -x1 : x1), shift > 0 ? shift : 0);
	struct oracle divisor = oracle_double(oracle_of(x2 < 0 ? -x2 : x2), shift < 0 ? -shift : 0);
	bool negative = (x1 < 0) != (x2 < 0);
	if (!oracle_less(dividend, oracle_double(divisor, 17)))
		return negative ? -(1 << 17) : 1 << 17;
	int64_t q = 0;
	for (int bit = 16; bit >= 0; bit--) {
		int64_t trial = q + ((int64_t)1 << bit);
		if (!oracle_less(dividend, oracle_multiply(divisor, trial)))
			q = trial;
	}
	struct oracle rest = oracle_subtract(dividend, oracle_multiply(divisor, q));
	rest = oracle_add(rest, rest);
	int to_half = oracle_less(rest, divisor) ? -1 : oracle_less(divisor, rest) ? 1 : 0;
	return round_magnitude(q, to_half, negative, mode);
}

static void check_against_oracle(struct calls *c)
{
	calls_run(c);
	int64_t low, high, saturated = 0, zeros = 0;
	int64_t f1 = c->operands[IN1][0].frac_bits, f2 = c->operands[IN2][0].frac_bits;
	int64_t f = c->operands[OUT][0].frac_bits;
	npumem_dtype_range(c->operands[OUT][0].dtype, &low, &high);
	for (int64_t i = 0; i < c->operands[OUT][0].shape.w; i++) {
		int64_t x1 = calls_get(c, IN1, c->operands[IN1][0].shape.w == 1 ? 0 : i);
		int64_t x2 = calls_get(c, IN2, c->operands[IN2][0].shape.w == 1 ? 0 : i);
		int64_t want;
		if (x2 == 0) {
			want = x1 > 0 ? high : x1 < 0 ? low : 0;
			zeros++;
		} else {
			int64_t exact = long_division(x1, x2, f - f1 + f2, (int)c->call.rounding);
			want = exact < low ? low : exact > high ? high : exact;
			saturated += want != exact;
		}
		if (calls_get(c, OUT, i) != want)
			ck_abort_msg("%lld Q.%lld / %lld Q.%lld in Q.%lld, mode %d, is %lld, not %lld",
				     (long long)x1, (long long)f1, (long long)x2, (long long)f2, (long long)f,
				     (int)c->call.rounding, (long long)calls_get(c, OUT, i), (long long)want);
	}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.divided_by_zero, zeros);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
	ck_assert_int_eq(c->call.counts.macs, 0);
}

START_TEST(random_calls)
{
	/* shifts: 7, 0, 16, -15, -16, -17, -18, 31, 32, 33, 14, 15, 254, -127, 127, 64, -64, 1, -1 */
	static const int64_t formats[][3] = {{7, 7, 7},	 {9, 4, 5},    {4, 12, 8},    {15, 0, 0},  {16, 0, 0},
					     {17, 0, 0}, {18, 0, 0},   {0, 31, 0},    {0, 16, 16}, {0, 33, 0},
					     {0, 14, 0}, {0, 15, 0},   {0, 127, 127}, {127, 0, 0}, {0, 127, 0},
					     {0, 63, 1}, {127, 63, 0}, {0, 1, 0},     {1, 0, 0}};
	uint64_t state = 681;
	for (unsigned f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int mode = 1; mode <= 3; mode++)
			for (int scalar = 0; scalar <= 3; scalar++) {
				struct calls c;
				int64_t w = f == 0 && scalar == 0 ? 262 : 20;
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

/* Every pair of fx8 values, with the quotients of all of them in range of fx16-like precision or past it. */
START_TEST(every_pair)
{
	for (int mode = 1; mode <= 3; mode++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_ELTWISE_DIV);
		int8_t *in1 = calls_add(&c, "in1", NPUMEM_FX8, 3, 1, 1, 256, 256);
		int8_t *in2 = calls_add(&c, "in2", NPUMEM_FX8, 2, 1, 1, 256, 256);
		int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 4, 1, 1, 256, 256);
		c.call.rounding = (enum npumem_rounding)mode;
		for (int i = 0; i < 65536; i++) {
			in1[i] = (int8_t)(i / 256 - 128);
			in2[i] = (int8_t)(i % 256 - 128);
		}
		calls_run(&c);
		for (int i = 0; i < 65536; i++) {
			int dividend = abs(in1[i]) * 8, divisor = abs(in2[i]);
			int64_t want = in1[i] > 0 ? 127 : in1[i] < 0 ? -128 : 0;
			if (divisor > 0) {
				int rest = 2 * (dividend % divisor);
				want = round_magnitude(dividend / divisor, (rest > divisor) - (rest < divisor),
						       (in1[i] < 0) != (in2[i] < 0), mode);
				want = want < -128 ? -128 : want > 127 ? 127 : want;
			}
			if (out[i] != want)
				ck_abort_msg("8 * %d / %d is %d, not %d", in1[i], in2[i], out[i], (int)want);
		}
		ck_assert_int_eq(c.call.counts.divided_by_zero, 256);
		calls_free(&c);
	}
}
END_TEST

START_TEST(by_zero)
{
	struct calls c;
	set_up(&c, NPUMEM_FX16, (const int64_t[3]){3, 60, 100}, 3, 1);
	calls_put(&c, IN1, 0, 1);
	calls_put(&c, IN1, 1, -1);
	calls_put(&c, IN1, 2, 0);
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, OUT, 0), INT16_MAX);
	ck_assert_int_eq(calls_get(&c, OUT, 1), INT16_MIN);
	ck_assert_int_eq(calls_get(&c, OUT, 2), 0);
	ck_assert_int_eq(c.call.counts.divided_by_zero, 3);
	ck_assert_int_eq(c.call.counts.saturated, 0);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	struct calls c;
	set_up(&c, NPUMEM_FX16, (const int64_t[3]){1, 2, 3}, 5, 5);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[IN1][0].dtype = NPUMEM_INT16;
	calls_refused(&c, "eltwise_div: in1 is int16, but must be fx8 or fx16");
	c.operands[IN1][0].dtype = NPUMEM_FX16;
	c.operands[IN2][0].dtype = NPUMEM_FX8;
	calls_refused(&c, "eltwise_div: in2 is fx8, but must be fx16 as in1 is");
	c.operands[IN2][0].dtype = NPUMEM_FX16;
	c.operands[OUT][0].dtype = NPUMEM_FP32;
	calls_refused(&c, "eltwise_div: out is fp32, but must be fx16 as in1 is");
	c.operands[OUT][0].dtype = NPUMEM_FX16;
	c.operands[IN2][0].shape.w = 4;
	calls_refused(&c, "eltwise_div: in2 has W 4, but in1, which is no scalar, has 5");
	c.operands[IN2][0].shape.w = 1;
	c.operands[OUT][0].shape.h = 2;
	calls_refused(&c, "eltwise_div: out has H 2, but in1 has 1");
	calls_free(&c);
}
END_TEST

Suite *suite_eltwise_div(void)
{
	Suite *suite = suite_create("device/kernels/eltwise_div");
	TCase *tcase = tcase_create("eltwise_div");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, every_pair);
	tcase_add_test(tcase, by_zero);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
