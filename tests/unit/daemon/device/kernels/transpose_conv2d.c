/* transpose_conv2d against a plain scatter, every small window, and its refusals. */
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
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
