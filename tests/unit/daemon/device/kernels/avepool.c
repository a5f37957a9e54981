/* avepool against both definitions of its mean, sums past the accumulator, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, OUT };

struct shape {
	int64_t n, c, h, w, kh, kw, stride_h, stride_w, top, bottom, left, right;
};

static void set_up(struct calls *c, const struct shape *s, int dtype, int64_t in_frac_bits, int64_t out_frac_bits)
{
	calls_init(c, NPUMEM_KERNEL_AVEPOOL);
	calls_add(c, "in", dtype, in_frac_bits, s->n, s->c, s->h, s->w);
	calls_add(c, "out", dtype, out_frac_bits, s->n, s->c,
		  (s->h + s->top + s->bottom - s->kh) / s->stride_h + 1,
		  (s->w + s->left + s->right - s->kw) / s->stride_w + 1);
	calls_param(c, NPUMEM_PARAM_KERNEL, 2, s->kh, s->kw, 0, 0);
	calls_param(c, NPUMEM_PARAM_STRIDE, 2, s->stride_h, s->stride_w, 0, 0);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, s->top, s->bottom, s->left, s->right);
}

/* The sum of the valid points of a window, and how many these are. */
static int64_t window_sum(const struct calls *c, const struct shape *s, int64_t feature, int64_t y, int64_t x,
			  int64_t *points)
{
	int64_t sum = 0;
	*points = 0;
	for (int64_t ky = 0; ky < s->kh; ky++)
		for (int64_t kx = 0; kx < s->kw; kx++) {
			int64_t iy = y * s->stride_h + ky - s->top, ix = x * s->stride_w + kx - s->left;
			if (iy < 0 || iy >= s->h || ix < 0 || ix >= s->w)
				continue;
			sum += calls_get(c, IN, (feature * s->h + iy) * s->w + ix);
			(*points)++;
		}
	return sum;
}

/* sum / n by the 15 leading bits of 1/n. */
static int64_t truncated_mean(int64_t sum, int64_t n, int64_t shift, int mode, int64_t low, int64_t high,
			      int64_t *saturated)
{
	int64_t places = 14;
	while ((INT64_C(2) << places) / n < 32768)
		places++;
	return oracle_result(oracle_multiply(oracle_of(sum), (INT64_C(1) << places) / n), places + shift, mode,
			     low, high, saturated);
}

/* sum / 2^shift / n, rounded once. */
static int64_t exact_mean(int64_t sum, int64_t n, int64_t shift, int mode, int64_t low, int64_t high,
			  int64_t *saturated)
{
	int64_t above = shift < 0 ? sum * (INT64_C(1) << -shift) : sum, below = shift > 0 ? n << shift : n;
	int64_t floor = above / below - (above % below < 0), twice = 2 * (above - floor * below);
	bool tie_up = mode == NPUMEM_UP || (mode == NPUMEM_NEAREST && sum > 0) ||
		      (mode == NPUMEM_CONVERGENT && floor % 2 != 0);
	int64_t mean = floor + (twice > below || (twice == below && tie_up));
	return oracle_clamp(oracle_of(mean), low, high, saturated);
}

static const struct shape shapes[] = {
	{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},	{2, 3, 5, 6, 2, 2, 2, 2, 0, 0, 0, 0},
	{1, 2, 4, 5, 3, 3, 1, 1, 2, 2, 2, 2},	{2, 2, 7, 9, 3, 2, 2, 3, 1, 2, 0, 1},
	{1, 1, 1, 3, 4, 5, 1, 2, 3, 3, 4, 2},	{1, 2, 6, 10, 5, 1, 1, 1, 1, 4, 0, 0},
	{2, 150, 3, 4, 3, 4, 1, 1, 0, 0, 0, 0},
};

static void check_against_loops(const struct calls *c, const struct shape *s, int64_t shift, int exact)
{
	int mode = (int)c->call.rounding;
	int64_t low, high, saturated = 0, at = 0, points;
	npumem_dtype_range(c->operands[OUT][0].dtype, &low, &high);
	const struct npumem_dims *out = &c->operands[OUT][0].shape;
	for (int64_t feature = 0; feature < out->n * out->c; feature++)
		for (int64_t y = 0; y < out->h; y++)
			for (int64_t x = 0; x < out->w; x++, at++) {
				int64_t sum = window_sum(c, s, feature, y, x, &points);
				int64_t want = (exact ? exact_mean : truncated_mean)(sum, points, shift, mode, low,
										     high, &saturated);
				ck_assert_int_eq(calls_get(c, OUT, at), want);
			}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
}

START_TEST(random_calls)
{
	uint64_t state = 111;
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int64_t shift = -4; shift <= 4; shift += 2)
			for (int mode = 1; mode <= 3; mode++)
				for (int exact = 0; exact <= 1; exact++) {
					int dtype = oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
					struct calls c;
					set_up(&c, &shapes[s], dtype, 60, 60 - shift);
					c.call.rounding = (enum npumem_rounding)mode;
					calls_param(&c, NPUMEM_PARAM_EXACT, 1, exact, 0, 0, 0);
					calls_sample(&c, IN, &state);
					calls_run(&c);
					check_against_loops(&c, &shapes[s], shift, exact);
					calls_free(&c);
				}
}
END_TEST

/* The reciprocal of 6 falls short, and with it a mean of exactly one half. */
START_TEST(truncation_shows)
{
	for (int exact = 0; exact <= 1; exact++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_AVEPOOL);
		int8_t *in = calls_add(&c, "in", NPUMEM_FX8, 0, 1, 1, 1, 6);
		int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 0, 1, 1, 1, 1);
		in[0] = 3; /* 3 / 6 */
		c.call.rounding = NPUMEM_UP;
		calls_param(&c, NPUMEM_PARAM_KERNEL, 2, 1, 6, 0, 0);
		calls_param(&c, NPUMEM_PARAM_EXACT, 1, exact, 0, 0, 0);
		calls_run(&c);
		ck_assert_int_eq(out[0], exact);
		calls_free(&c);
	}
}
END_TEST

/* Simple accumulation holds 2^24 of the lowest fx8 values, as the arithmetic chapter says; more of them wrap. */
START_TEST(the_last_safe_sum)
{
	for (int64_t more = 0; more <= 1; more++) {
		struct calls c;
		calls_init(&c, NPUMEM_KERNEL_AVEPOOL);
		int8_t *in = calls_add(&c, "in", NPUMEM_FX8, 0, 1, 1, 4096, 4096 + more);
		int8_t *out = calls_add(&c, "out", NPUMEM_FX8, 0, 1, 1, 1, 1);
		memset(in, -128, (size_t)(4096 * (4096 + more)));
		calls_param(&c, NPUMEM_PARAM_KERNEL, 2, 4096, 4096 + more, 0, 0);
		calls_run(&c);
		ck_assert_int_eq(c.call.counts.wrapped, more);
		ck_assert_int_eq(out[0], more ? 127 : -128);
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_UINT8, .text = "avepool: in is uint8, but must be fx8 or fx16"},
		{"in", 't', NPUMEM_FX16, .text = "avepool: out is fx8, but must be fx16 as in is"},
		{"out", 'c', 3, .text = "avepool: out has C 3, but in and the window give 2"},
		{"out", 'h', 4, .text = "avepool: out has H 4, but in and the window give 5"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {0, 3},
		 .text = "avepool: kernel h is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {2, INT64_MAX},
		 .text = "avepool: kernel w is 9223372036854775807, but must be"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {1, 3},
		 .text = "avepool: padding top is 1, but must be 0 to 0"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {7, 3},
		 .text = "the window's h is 7 (kernel 7, dilation 1), more than the 6 of in with its padding"},
		{.param = NPUMEM_PARAM_STRIDE, .n_values = 2, .values = {0, 1}, .text = "avepool: stride h is 0"},
		{.param = NPUMEM_PARAM_EXACT,
		 .n_values = 1,
		 .values = {2},
		 .text = "avepool: exact is 2, but must be 0 to 1"},
	};
	static const struct shape good = {1, 2, 5, 6, 2, 3, 1, 1, 1, 0, 0, 2};
	struct calls c;
	set_up(&c, &good, NPUMEM_FX8, 7, 7);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_avepool(void)
{
	Suite *suite = suite_create("device/kernels/avepool");
	TCase *tcase = tcase_create("avepool"), *slow = tcase_create("avepool_slow");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, truncation_shows);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	tcase_set_tags(slow, "slow");
	tcase_add_test(slow, the_last_safe_sum);
	suite_add_tcase(suite, slow);
	return suite;
}
