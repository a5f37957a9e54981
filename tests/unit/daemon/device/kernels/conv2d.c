/* conv2d against plain loops over every index, its refusals, and windows that hang over every edge. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, WEIGHTS, BIAS, OUT };

struct shape {
	int64_t n, i, h, w, o, kh, kw;
	int64_t stride_h, stride_w, top, bottom, left, right, dilation_h, dilation_w;
};

static int64_t extent(int64_t in, int64_t pads, int64_t kernel, int64_t dilation, int64_t stride)
{
	return (in + pads - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static void set_up(struct calls *c, const struct shape *s, const struct calls_types *types,
		   const int64_t frac_bits[4], bool has_bias)
{
	calls_init(c, NPUMEM_KERNEL_CONV2D);
	calls_add(c, "in", types->data, frac_bits[IN], s->n, s->i, s->h, s->w);
	calls_add(c, "weights", types->weights, frac_bits[WEIGHTS], s->i, s->o, s->kh, s->kw);
	if (has_bias)
		calls_add(c, "bias", types->weights, frac_bits[BIAS], 1, s->o, 1, 1);
	calls_add(c, "out", types->data, frac_bits[OUT], s->n, s->o,
		  extent(s->h, s->top + s->bottom, s->kh, s->dilation_h, s->stride_h),
		  extent(s->w, s->left + s->right, s->kw, s->dilation_w, s->stride_w));
	calls_param(c, NPUMEM_PARAM_STRIDE, 2, s->stride_h, s->stride_w, 0, 0);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, s->top, s->bottom, s->left, s->right);
	calls_param(c, NPUMEM_PARAM_DILATION, 2, s->dilation_h, s->dilation_w, 0, 0);
}

/* One output by the formula, over all taps; padded ones are skipped and not counted. */
static int64_t sum_of(const struct calls *c, const struct shape *s, int64_t n, int64_t o, int64_t y, int64_t x,
		      int64_t *macs)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < s->i; i++)
		for (int64_t ky = 0; ky < s->kh; ky++)
			for (int64_t kx = 0; kx < s->kw; kx++) {
				int64_t iy = y * s->stride_h + ky * s->dilation_h - s->top;
				int64_t ix = x * s->stride_w + kx * s->dilation_w - s->left;
				if (iy < 0 || iy >= s->h || ix < 0 || ix >= s->w)
					continue;
				sum += calls_get(c, IN, ((n * s->i + i) * s->h + iy) * s->w + ix) *
				       calls_get(c, WEIGHTS, ((i * s->o + o) * s->kh + ky) * s->kw + kx);
				(*macs)++;
			}
	return sum;
}

static void check_against_loops(struct calls *c, const struct shape *s, int64_t relu)
{
	calls_param(c, NPUMEM_PARAM_RELU, relu > 0, relu, 0, 0, 0);
	calls_run(c);
	const struct npumem_dims *out = &c->operands[OUT][0].shape;
	bool has_bias = c->roles[BIAS].n > 0;
	int64_t acc_frac_bits = c->operands[IN][0].frac_bits + c->operands[WEIGHTS][0].frac_bits;
	int64_t saturated = 0, wrapped = 0, macs = 0, at = 0;
	for (int64_t n = 0; n < out->n; n++)
		for (int64_t o = 0; o < out->c; o++)
			for (int64_t y = 0; y < out->h; y++)
				for (int64_t x = 0; x < out->w; x++, at++) {
					int64_t sum = sum_of(c, s, n, o, y, x, &macs);
					int64_t want = calls_weighted(
						c, sum, has_bias ? calls_get(c, BIAS, o) : 0, acc_frac_bits,
						has_bias ? c->operands[BIAS][0].frac_bits : acc_frac_bits, OUT,
						relu, &saturated, &wrapped);
					ck_assert_msg(calls_get(c, OUT, at) == want,
						      "out[%lld,%lld,%lld,%lld] is %lld, not %lld", (long long)n,
						      (long long)o, (long long)y, (long long)x,
						      (long long)calls_get(c, OUT, at), (long long)want);
				}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, macs);
	ck_assert_int_eq(c->call.counts.divided_by_zero, 0);
}

static const struct shape shapes[] = {
	/* n i h w o kh kw, stride, padding, dilation */
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1}, {2, 3, 5, 7, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 2, 4, 5, 3, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1}, /* corners see one tap */
	{2, 2, 6, 6, 2, 2, 3, 3, 2, 1, 0, 0, 2, 1, 1}, /* leftover rows and columns */
	{1, 2, 7, 8, 2, 3, 2, 1, 2, 2, 1, 3, 0, 2, 4}, /* dilated over the edge */
	{1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2, 1, 3, 3}, /* dilated around the input: no tap at all */
	{3, 4, 3, 4, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1}, /* pointwise */
	{2, 3, 4, 4, 2, 1, 1, 2, 3, 0, 0, 0, 0, 1, 1}, /* pointwise with a stride */
};

START_TEST(random_calls)
{
	uint64_t state = 11;
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (unsigned t = 0; t < 3; t++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				int64_t in = oracle_between(&state, 0, 20),
					weights = oracle_between(&state, 0, 20);
				int64_t shift = oracle_between(&state, -3, 20);
				int64_t out = in + weights - shift < 0 ? 0 : in + weights - shift;
				const int64_t frac_bits[4] = {in, weights, oracle_between(&state, 0, in + weights),
							      out};
				set_up(&c, &shapes[s], &calls_fxn[t], frac_bits, oracle_random(&state) % 4 > 0);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN, &state);
				calls_sample(&c, WEIGHTS, &state);
				if (c.roles[BIAS].n > 0)
					calls_sample(&c, BIAS, &state);
				check_against_loops(&c, &shapes[s], (int64_t)oracle_random(&state) % 5);
				calls_free(&c);
			}
}
END_TEST

/* frac_bits far beyond the container: only their sums and differences count. */
START_TEST(frac_bits_beyond_the_container)
{
	uint64_t state = 12;
	static const int64_t formats[][4] = {
		{127, 127, 0, 127}, {127, 120, 127, 127}, {127, 127, 127, 0}, {0, 0, 0, 127}, {127, 0, 127, 120}};
	for (unsigned f = 0; f < 5; f++)
		for (unsigned t = 0; t < 3; t++) {
			struct calls c;
			set_up(&c, &shapes[1], &calls_fxn[t], formats[f], true);
			calls_sample(&c, IN, &state);
			calls_sample(&c, WEIGHTS, &state);
			calls_sample(&c, BIAS, &state);
			check_against_loops(&c, &shapes[1], 1 + f % 4);
			calls_free(&c);
		}
}
END_TEST

/* 512 products of all-minimum fx16 operands are 2^39: one more than the accumulator holds. */
START_TEST(wraps_at_40_bits)
{
	for (int64_t inputs = 511; inputs <= 513; inputs++) {
		const struct shape s = {1, inputs, 1, 3, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1};
		struct calls c;
		set_up(&c, &s, &calls_fxn[1], (const int64_t[4]){0, 30, 0, 3}, false);
		for (int64_t i = 0; i < inputs * 3; i++)
			calls_put(&c, IN, i, INT16_MIN);
		for (int64_t i = 0; i < inputs * 2; i++)
			calls_put(&c, WEIGHTS, i, INT16_MIN);
		check_against_loops(&c, &s, 0);
		ck_assert_int_eq(c.call.counts.wrapped, inputs >= 512 ? 6 : 0);
		ck_assert_int_eq(c.call.counts.macs, 6 * inputs);
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct shape good = {1, 2, 5, 6, 3, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1};
	const int64_t frac_bits[4] = {7, 3, 10, 7};
	struct calls c;
	set_up(&c, &good, &calls_fxn[0], frac_bits, true);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);

	c.operands[IN][0].dtype = NPUMEM_INT8;
	calls_refused(&c, "conv2d: in is int8, but must be fx8 or fx16");
	c.operands[IN][0].dtype = NPUMEM_FX8;
	c.operands[WEIGHTS][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "conv2d: weights is fx16, but must be fx8 with fx8 in");
	c.operands[IN][0].dtype = NPUMEM_FX16;
	c.operands[WEIGHTS][0].dtype = NPUMEM_FP32;
	calls_refused(&c, "conv2d: weights is fp32, but must be fx16 or fx8 with fx16 in");
	c.operands[IN][0].dtype = c.operands[WEIGHTS][0].dtype = NPUMEM_FX8;
	c.operands[BIAS][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "conv2d: bias is fx16, but must be fx8 as weights is");
	c.operands[BIAS][0].dtype = NPUMEM_FX8;
	c.operands[OUT][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "conv2d: out is fx16, but must be fx8 as in is");
	c.operands[OUT][0].dtype = NPUMEM_FX8;

	/* Q.7 and Q.3: the bias may have at most 10 (the chapter's own example). */
	c.operands[BIAS][0].frac_bits = 11;
	calls_refused(&c, "conv2d: bias has 11 frac_bits, more than the 10 of in (7) and weights (3)");
	ck_assert_int_eq(npumem_error_find(&c.error, "value", 0), 11);
	ck_assert_int_eq(npumem_error_find(&c.error, "expected", 0), 10);
	c.operands[BIAS][0].frac_bits = 10;

	c.operands[WEIGHTS][0].shape.n = 3;
	calls_refused(&c, "conv2d: weights has N 3, but the input channels of a group are 2");
	c.operands[WEIGHTS][0].shape.n = 2;
	c.operands[BIAS][0].shape.c = 4;
	calls_refused(&c, "conv2d: bias has C 4, but weights need 3");
	c.operands[BIAS][0].shape.c = 3;
	c.operands[BIAS][0].shape.w = 2;
	calls_refused(&c, "conv2d: bias has W 2, but weights need 1");
	c.operands[BIAS][0].shape.w = 1;
	c.operands[OUT][0].shape.h = 4;
	calls_refused(&c, "conv2d: out has H 4, but in, weights and the window give 3");
	c.operands[OUT][0].shape.h = 3;
	c.operands[OUT][0].shape.n = 2;
	calls_refused(&c, "conv2d: out has N 2, but in, weights and the window give 1");
	c.operands[OUT][0].shape.n = 1;

	calls_param(&c, NPUMEM_PARAM_RELU, 1, 5, 0, 0, 0);
	calls_refused(&c, "conv2d: relu is number 5, but its choices are 1 to 4: none gen 1 6");
	calls_param(&c, NPUMEM_PARAM_RELU, 0, 0, 0, 0, 0);
	c.call.rounding = (enum npumem_rounding)4;
	calls_refused(&c, "conv2d: there is no rounding mode 4");
	calls_free(&c);
}
END_TEST

START_TEST(window_refusals)
{
	static const struct {
		int param;
		unsigned n;
		int64_t values[4];
		const char *text;
	} rows[] = {
		{NPUMEM_PARAM_STRIDE, 2, {0, 1}, "conv2d: stride h is 0, but must be 1 to 2147483647"},
		{NPUMEM_PARAM_STRIDE, 2, {1, -4}, "conv2d: stride w is -4, but must be 1 to 2147483647"},
		{NPUMEM_PARAM_STRIDE, 2, {1, INT64_MAX}, "stride w is 9223372036854775807, but must be"},
		{NPUMEM_PARAM_DILATION, 2, {1, 0}, "conv2d: dilation w is 0, but must be 1 to 2147483647"},
		{NPUMEM_PARAM_DILATION, 2, {INT64_MIN, 1}, "dilation h is -9223372036854775808, but must be"},
		{NPUMEM_PARAM_DILATION,
		 2,
		 {3, 1},
		 "the window's h is 7 (kernel 3, dilation 3), more than the 5 of in"},
		{NPUMEM_PARAM_DILATION,
		 2,
		 {INT32_MAX, 1},
		 "the window's h is 4294967295 (kernel 3, dilation 2147483647)"},
		{NPUMEM_PARAM_PADDING, 4, {3, 0, 0, 0}, "conv2d: padding top is 3, but must be 0 to 2"},
		{NPUMEM_PARAM_PADDING, 4, {0, 3, 0, 0}, "conv2d: padding bottom is 3, but must be 0 to 2"},
		{NPUMEM_PARAM_PADDING, 4, {0, 0, 2, 0}, "conv2d: padding left is 2, but must be 0 to 1"},
		{NPUMEM_PARAM_PADDING, 4, {0, 0, 0, -1}, "conv2d: padding right is -1, but must be 0 to 1"},
		{NPUMEM_PARAM_PADDING,
		 4,
		 {0, 0, INT64_MAX, 0},
		 "padding left is 9223372036854775807, but must be"},
	};
	static const struct shape good = {1, 2, 5, 6, 3, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct calls c;
		set_up(&c, &good, &calls_fxn[0], (const int64_t[4]){7, 3, 10, 7}, true);
		const int64_t *v = rows[i].values;
		calls_param(&c, rows[i].param, rows[i].n, v[0], v[1], v[2], v[3]);
		calls_refused(&c, rows[i].text);
		calls_free(&c);
	}
}
END_TEST

Suite *suite_conv2d(void)
{
	Suite *suite = suite_create("device/kernels/conv2d");
	TCase *tcase = tcase_create("conv2d");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, frac_bits_beyond_the_container);
	tcase_add_test(tcase, wraps_at_40_bits);
	tcase_add_test(tcase, refusals);
	tcase_add_test(tcase, window_refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
