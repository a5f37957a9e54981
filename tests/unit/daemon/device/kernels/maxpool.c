/* maxpool against plain loops, out of another format, and its refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { IN, OUT };

struct shape {
	int64_t n, c, h, w, kh, kw, stride_h, stride_w, top, bottom, left, right;
};

static void set_up(struct calls *c, const struct shape *s, int dtype, int64_t in_frac_bits, int64_t out_frac_bits)
{
	calls_init(c, NPUMEM_KERNEL_MAXPOOL);
	calls_add(c, "in", dtype, in_frac_bits, s->n, s->c, s->h, s->w);
	calls_add(c, "out", dtype, out_frac_bits, s->n, s->c,
		  (s->h + s->top + s->bottom - s->kh) / s->stride_h + 1,
		  (s->w + s->left + s->right - s->kw) / s->stride_w + 1);
	calls_param(c, NPUMEM_PARAM_KERNEL, 2, s->kh, s->kw, 0, 0);
	calls_param(c, NPUMEM_PARAM_STRIDE, 2, s->stride_h, s->stride_w, 0, 0);
	calls_param(c, NPUMEM_PARAM_PADDING, 4, s->top, s->bottom, s->left, s->right);
}

static int64_t largest(const struct calls *c, const struct shape *s, int64_t feature, int64_t y, int64_t x)
{
	int64_t most = INT64_MIN;
	for (int64_t ky = 0; ky < s->kh; ky++)
		for (int64_t kx = 0; kx < s->kw; kx++) {
			int64_t iy = y * s->stride_h + ky - s->top, ix = x * s->stride_w + kx - s->left;
			if (iy < 0 || iy >= s->h || ix < 0 || ix >= s->w)
				continue;
			int64_t value = calls_get(c, IN, (feature * s->h + iy) * s->w + ix);
			most = value > most ? value : most;
		}
	return most;
}

static const struct shape shapes[] = {
	{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},	{2, 3, 5, 6, 2, 2, 2, 2, 0, 0, 0, 0},
	{1, 2, 4, 5, 3, 3, 1, 1, 2, 2, 2, 2},	{2, 2, 7, 9, 3, 2, 2, 3, 1, 2, 0, 1},
	{1, 1, 1, 3, 4, 5, 1, 2, 3, 3, 4, 2},	{1, 2, 6, 10, 5, 1, 1, 1, 1, 4, 0, 0},
	{2, 150, 3, 4, 3, 4, 1, 1, 0, 0, 0, 0},
};

START_TEST(random_calls)
{
	uint64_t state = 31;
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int64_t shift = -4; shift <= 4; shift += 2)
			for (int mode = 1; mode <= 3; mode++) {
				int dtype = oracle_random(&state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
				struct calls c;
				set_up(&c, &shapes[s], dtype, 60, 60 - shift);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, IN, &state);
				calls_run(&c);
				int64_t low, high, saturated = 0, at = 0;
				npumem_dtype_range(dtype, &low, &high);
				const struct npumem_dims *out = &c.operands[OUT][0].shape;
				for (int64_t feature = 0; feature < out->n * out->c; feature++)
					for (int64_t y = 0; y < out->h; y++)
						for (int64_t x = 0; x < out->w; x++, at++) {
							int64_t most = largest(&c, &shapes[s], feature, y, x);
							ck_assert_int_eq(calls_get(&c, OUT, at),
									 oracle_result(oracle_of(most), shift,
										       mode, low, high,
										       &saturated));
						}
				ck_assert_int_eq(c.call.counts.saturated, saturated);
				ck_assert_int_eq(c.call.counts.macs, 0);
				ck_assert_int_eq(c.call.counts.wrapped, 0);
				calls_free(&c);
			}
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_UINT8, .text = "maxpool: in is uint8, but must be fx8 or fx16"},
		{"in", 't', NPUMEM_FX16, .text = "maxpool: out is fx8, but must be fx16 as in is"},
		{"out", 'c', 3, .text = "maxpool: out has C 3, but in and the window give 2"},
		{"out", 'h', 4, .text = "maxpool: out has H 4, but in and the window give 5"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {0, 3},
		 .text = "maxpool: kernel h is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {2, INT64_MAX},
		 .text = "maxpool: kernel w is 9223372036854775807, but must be"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {1, 3},
		 .text = "maxpool: padding top is 1, but must be 0 to 0"},
		{.param = NPUMEM_PARAM_KERNEL,
		 .n_values = 2,
		 .values = {7, 3},
		 .text = "the window's h is 7 (kernel 7, dilation 1), more than the 6 of in with its padding"},
		{.param = NPUMEM_PARAM_STRIDE, .n_values = 2, .values = {0, 1}, .text = "maxpool: stride h is 0"},
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

Suite *suite_maxpool(void)
{
	Suite *suite = suite_create("device/kernels/maxpool");
	TCase *tcase = tcase_create("maxpool");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
