/* transpose_conv2d against a plain scatter, every small window, and its refusals. */
#include "daemon/device/kernel_support/windows/convolution.h"
#include "tests/unit/daemon/device/kernels/convolutions.h"

static const struct shape shapes[] = {
	/* n i h w o kh kw, stride, padding */
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1}, {2, 3, 4, 5, 2, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1},
	{2, 2, 4, 5, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1}, {1, 3, 4, 3, 9, 3, 3, 2, 2, 1, 0, 0, 1, 1, 1, 1},
	{1, 2, 3, 4, 8, 4, 4, 2, 2, 1, 1, 1, 1, 1, 1, 1}, {2, 2, 3, 3, 11, 5, 4, 3, 2, 2, 3, 1, 3, 1, 1, 1},
	{1, 2, 3, 2, 2, 2, 3, 4, 5, 1, 0, 0, 2, 1, 1, 1}, /* outputs that meet no tap: the bias alone */
	{1, 2, 3, 2, 8, 2, 3, 4, 5, 1, 0, 0, 2, 1, 1, 1}, {1, 3, 4, 4, 2, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1},
	{1, 1, 2, 2, 1, 6, 6, 1, 1, 5, 0, 2, 3, 1, 1, 1}, {1, 1, 1, 2, 1, 1, 1, 3, 40, 0, 0, 0, 0, 1, 1, 1},
};

START_TEST(random_calls)
{
	check_shapes(NPUMEM_KERNEL_TRANSPOSE_CONV2D, shapes, sizeof(shapes) / sizeof(shapes[0]), 101);
}
END_TEST

/* Along W: every kernel, stride and cropping of small inputs, on both ways that a phase can take. */
START_TEST(every_small_window)
{
	uint64_t state = 102;
	for (int64_t in = 1; in <= 3; in++)
		for (int64_t kernel = 1; kernel <= 5; kernel++)
			for (int64_t stride = 1; stride <= 4; stride++)
				for (int64_t crop = 0; crop < kernel * kernel; crop++) {
					const struct shape s = {.n = 1,
								.i = 1,
								.h = 1,
								.w = in,
								.o = crop % 2 ? 1 : 8,
								.kh = 1,
								.kw = kernel,
								.stride_h = 1,
								.stride_w = stride,
								.left = crop % kernel,
								.right = crop / kernel};
					if ((in - 1) * stride + kernel - s.left - s.right < 1)
						continue;
					struct calls c;
					set_up(&c, NPUMEM_KERNEL_TRANSPOSE_CONV2D, &s, &calls_fxn[0],
					       (const int64_t[4]){7, 7, 7, 8}, true);
					calls_sample(&c, IN, &state);
					calls_sample(&c, WEIGHTS, &state);
					calls_sample(&c, BIAS, &state);
					check_against_loops(&c, 0);
					calls_free(&c);
				}
}
END_TEST

/* Numbers below n that leave this rest. */
static int64_t with_rest(int64_t n, int64_t rest, int64_t divisor)
{
	int64_t count = 0;
	for (int64_t i = 0; i < n; i++)
		count += i % divisor == rest;
	return count;
}

static struct window_axis phase_axis(int64_t in, int64_t kernel, int64_t stride, int64_t before, int64_t out,
				     int64_t first)
{
	int64_t taps = with_rest(kernel, (first + before) % stride, stride);
	return (struct window_axis){.in = in,
				    .out = with_rest(out, first, stride),
				    .kernel = taps,
				    .stride = 1,
				    .dilation = 1,
				    .before = taps - 1 - (first + before) / stride};
}

/* What the most demanding of all phases takes. */
START_TEST(scratch_of_all_phases)
{
	uint64_t state = 103;
	for (int i = 0; i < 1500; i++) {
		struct shape s = {.n = 1, .i = oracle_between(&state, 1, 3), .h = oracle_between(&state, 1, 9)};
		s.w = oracle_between(&state, 1, 40);
		s.o = oracle_between(&state, 1, 9);
		s.kh = oracle_between(&state, 1, 9);
		s.kw = oracle_between(&state, 1, 9);
		s.stride_h = oracle_between(&state, 1, 11);
		s.stride_w = oracle_between(&state, 1, 11);
		s.top = oracle_between(&state, 0, s.kh - 1);
		s.left = oracle_between(&state, 0, s.kw - 1);
		if ((s.h - 1) * s.stride_h + s.kh - s.top < 1 || (s.w - 1) * s.stride_w + s.kw - s.left < 1)
			continue;
		struct calls c;
		struct convolution convolution;
		size_t most = 0;
		set_up(&c, NPUMEM_KERNEL_TRANSPOSE_CONV2D, &s, &calls_fxn[0], (const int64_t[4]){7, 7, 7, 7},
		       false);
		ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
		convolution_init(&convolution, &c.call, 1);
		convolution.by_engine = c.kernel->pack_bytes(&c.call) > 0;
		const struct npumem_dims *out = &c.operands[OUT][0].shape;
		for (int64_t y = 0; y < s.stride_h && y < out->h; y++)
			for (int64_t x = 0; x < s.stride_w && x < out->w; x++) {
				struct phase phase = {
					{.window = phase_axis(s.h, s.kh, s.stride_h, s.top, out->h, y)},
					{.window = phase_axis(s.w, s.kw, s.stride_w, s.left, out->w, x)}};
				size_t bytes = convolution_scratch_bytes(&convolution, &phase);
				most = bytes > most ? bytes : most;
			}
		ck_assert_uint_eq(c.kernel->scratch_bytes(&c.call), most);
		calls_free(&c);
	}
}
END_TEST

/* A phase for each of 900 million outputs, which is no reason to look at them. */
START_TEST(scratch_of_many_phases)
{
	static const struct shape s = {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_TRANSPOSE_CONV2D, &s, &calls_fxn[0], (const int64_t[4]){7, 7, 7, 7}, false);
	struct npumem_dims *weights = &c.operands[WEIGHTS][0].shape, *out = &c.operands[OUT][0].shape;
	weights->h = weights->w = out->h = out->w = 30000;
	calls_param(&c, NPUMEM_PARAM_STRIDE, 2, INT32_MAX, INT32_MAX, 0, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert_uint_le(c.kernel->scratch_bytes(&c.call), 100000);
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_INT16, .text = "transpose_conv2d: in is int16, but must be fx8 or fx16"},
		{"in", 'c', 3, .text = "weights has N 2, but the input channels of a group are 3"},
		{"in", 'h', 5, .text = "out has H 9, but in, weights and the window give 11"},
		{"weights", 'n', 3, .text = "weights has N 3, but the input channels of a group are 2"},
		{"weights", 'w', 4, .text = "out has W 5, but in, weights and the window give 6"},
		{"bias", 'f', 15, .text = "bias has 15 frac_bits, more than the 14 of in (7) and weights (7)"},
		{"bias", 'c', 2, .text = "bias has C 2, but weights need 3"},
		{"out", 'n', 2, .text = "out has N 2, but in, weights and the window give 1"},
		{"out", 'c', 2, .text = "out has C 2, but in, weights and the window give 3"},
		{.param = NPUMEM_PARAM_STRIDE,
		 .n_values = 2,
		 .values = {2, 0},
		 .text = "transpose_conv2d: stride w is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_STRIDE,
		 .n_values = 2,
		 .values = {INT32_MAX, 1},
		 .text = "out has H 9, but in, weights and the window give 6442450944"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {3, 0, 0, 0},
		 .text = "transpose_conv2d: padding top is 3, but must be 0 to 2"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {0, 0, 0, -1},
		 .text = "transpose_conv2d: padding right is -1, but must be 0 to 2"},
		{"in", 'w', 1, .text = "padding crops 3 of the w of 3 and leaves nothing"},
	};
	static const struct shape good = {1, 2, 4, 6, 3, 3, 3, 2, 1, 0, 0, 1, 2, 1, 1, 1};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_TRANSPOSE_CONV2D, &good, &calls_fxn[0], (const int64_t[4]){7, 7, 7, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_transpose_conv2d(void)
{
	Suite *suite = suite_create("device/kernels/transpose_conv2d");
	TCase *tcase = tcase_create("transpose_conv2d");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, every_small_window);
	tcase_add_test(tcase, scratch_of_all_phases);
	tcase_add_test(tcase, scratch_of_many_phases);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
