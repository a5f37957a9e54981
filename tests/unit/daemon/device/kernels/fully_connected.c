/* fully_connected against plain loops, at the ends of its accumulators, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, WEIGHTS, BIAS, OUT };

static void set_up(struct calls *c, const struct calls_types *types, const struct npumem_dims *in, int64_t outputs,
		   const int64_t frac_bits[4], bool has_bias)
{
	calls_init(c, NPUMEM_KERNEL_FULLY_CONNECTED);
	calls_add(c, "in", types->data, frac_bits[IN], in->n, in->c, in->h, in->w);
	calls_add(c, "weights", types->weights, frac_bits[WEIGHTS], in->c * in->h * in->w, outputs, 1, 1);
	if (has_bias)
		calls_add(c, "bias", types->weights, frac_bits[BIAS], 1, outputs, 1, 1);
	calls_add(c, "out", types->data, frac_bits[OUT], in->n, outputs, 1, 1);
}

static void check_against_loops(struct calls *c, int64_t relu)
{
	calls_param(c, NPUMEM_PARAM_RELU, relu > 0, relu, 0, 0, 0);
	calls_run(c);
	int64_t batch = c->operands[IN][0].shape.n, outputs = c->operands[OUT][0].shape.c;
	int64_t inputs = c->operands[WEIGHTS][0].shape.n;
	bool has_bias = c->roles[BIAS].n > 0;
	int64_t acc_frac_bits = c->operands[IN][0].frac_bits + c->operands[WEIGHTS][0].frac_bits;
	int64_t saturated = 0, wrapped = 0;
	for (int64_t n = 0; n < batch; n++)
		for (int64_t m = 0; m < outputs; m++) {
			int64_t sum = 0;
			for (int64_t k = 0; k < inputs; k++)
				sum += calls_get(c, IN, n * inputs + k) * calls_get(c, WEIGHTS, k * outputs + m);
			int64_t want = calls_weighted(c, sum, has_bias ? calls_get(c, BIAS, m) : 0, acc_frac_bits,
						      has_bias ? c->operands[BIAS][0].frac_bits : acc_frac_bits,
						      OUT, relu, &saturated, &wrapped);
			ck_assert_int_eq(calls_get(c, OUT, n * outputs + m), want);
		}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, batch * inputs * outputs);
}

START_TEST(random_calls)
{
	static const struct {
		struct npumem_dims in;
		int64_t outputs;
	} shapes[] = {{{1, 1, 1, 1}, 1}, {{2, 3, 2, 4}, 5}, {{3, 7, 1, 1}, 300}, {{2, 2, 1, 1}, 2050}};
	uint64_t state = 21;
	for (unsigned s = 0; s < 4; s++)
		for (unsigned t = 0; t < 3; t++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				int64_t in = oracle_between(&state, 0, 20),
					weights = oracle_between(&state, 0, 20);
				int64_t out = oracle_between(&state, 0, in + weights + 2);
				const int64_t frac_bits[4] = {in, weights, oracle_between(&state, 0, in + weights),
							      out};
				set_up(&c, &calls_fxn[t], &shapes[s].in, shapes[s].outputs, frac_bits, mode != 2);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN, &state);
				calls_sample(&c, WEIGHTS, &state);
				if (c.roles[BIAS].n > 0)
					calls_sample(&c, BIAS, &state);
				check_against_loops(&c, (int64_t)oracle_random(&state) % 5);
				calls_free(&c);
			}
}
END_TEST

/* All-minimum operands at the last safe number of products and one past it, each with a bias of one unit. */
START_TEST(the_last_safe_product)
{
	static const int64_t safe[] = {131071, 511, 131071};
	for (unsigned t = 0; t < 3; t++)
		for (int64_t more = 0; more <= 1; more++)
			for (int64_t bias = -1; bias <= 1; bias++) {
				struct npumem_dims in = {1, safe[t] + more, 1, 1};
				struct calls c;
				set_up(&c, &calls_fxn[t], &in, 1, (const int64_t[4]){0, 20, 20, 0}, true);
				calls_put(&c, BIAS, 0, bias);
				int64_t low, high;
				npumem_dtype_range(calls_fxn[t].data, &low, &high);
				for (int64_t i = 0; i < in.c; i++)
					calls_put(&c, IN, i, low);
				npumem_dtype_range(calls_fxn[t].weights, &low, &high);
				for (int64_t i = 0; i < in.c; i++)
					calls_put(&c, WEIGHTS, i, low);
				check_against_loops(&c, 0);
				ck_assert_int_eq(c.call.counts.wrapped, more == 1 && bias >= 0);
				calls_free(&c);
			}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_INT8, .text = "fully_connected: in is int8, but must be fx8 or fx16"},
		{"in", 'c', 4, .text = "fully_connected: weights has N 24, but in needs 32"},
		{"in", 'n', 3, .text = "fully_connected: out has N 2, but in and weights give 3"},
		{"weights", 't', NPUMEM_FX16,
		 .text = "fully_connected: weights is fx16, but must be fx8 with fx8 in"},
		{"weights", 'n', 23, .text = "fully_connected: weights has N 23, but in needs 24"},
		{"weights", 'w', 2, .text = "fully_connected: weights has W 2, but in needs 1"},
		{"weights", 'f', 0, .text = "bias has 8 frac_bits, more than the 7 of in (7) and weights (0)"},
		{"bias", 't', NPUMEM_FX16, .text = "fully_connected: bias is fx16, but must be fx8 as weights is"},
		{"bias", 'n', 5, .text = "fully_connected: bias has N 5, but weights need 1"},
		{"out", 't', NPUMEM_FX16, .text = "fully_connected: out is fx16, but must be fx8 as in is"},
		{"out", 'n', 1, .text = "fully_connected: out has N 1, but in and weights give 2"},
		{"out", 'c', 6, .text = "fully_connected: out has C 6, but in and weights give 5"},
		{.param = NPUMEM_PARAM_RELU, .n_values = 1, .values = {0}, .text = "relu is number 0"},
	};
	struct calls c;
	set_up(&c, &calls_fxn[0], &(struct npumem_dims){2, 3, 2, 4}, 5, (const int64_t[4]){7, 7, 8, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	c.operands[IN][0].shape.c = c.operands[WEIGHTS][0].shape.n = INT64_C(1) << 33;
	calls_refused(&c, "fully_connected: an output would sum 68719476736 products, more than 4294967296");
	calls_free(&c);
}
END_TEST

Suite *suite_fully_connected(void)
{
	Suite *suite = suite_create("device/kernels/fully_connected");
	TCase *tcase = tcase_create("fully_connected");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, the_last_safe_product);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
