/* conv2d against plain loops over every index, its refusals, and windows that hang over every edge. */
#include "tests/unit/daemon/device/kernels/convolutions.h"

static const struct shape shapes[] = {
	/* n i h w o kh kw, stride, padding, dilation */
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},     {2, 3, 5, 7, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 2, 4, 5, 3, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1},     /* corners see one tap */
	{2, 2, 6, 6, 2, 2, 3, 3, 2, 1, 0, 0, 2, 1, 1, 1},     /* leftover rows and columns */
	{1, 2, 7, 8, 2, 3, 2, 1, 2, 2, 1, 3, 0, 2, 4, 1},     /* dilated over the edge */
	{1, 1, 1, 1, 1, 2, 2, 1, 1, 2, 1, 2, 1, 3, 3, 1},     /* dilated around the input: no tap at all */
	{3, 4, 3, 4, 5, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},     /* pointwise */
	{2, 3, 4, 4, 2, 1, 1, 2, 3, 0, 0, 0, 0, 1, 1, 1},     /* pointwise with a stride */
	{3, 40, 1, 1, 9, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},    /* one point: fully connected */
	{1, 2, 1, 3, 1, 1, 3, 1, 50, 0, 0, 0, 0, 1, 1, 1},    /* a stride far beyond the input */
	{1, 2, 3, 3, 2, 2, 2, 60, 1, 40, 69, 1, 1, 70, 1, 1}, /* a window far wider than the input */
};
/* The same with many output channels, which take another way. */
static const struct shape many_channels[] = {
	{1, 1, 1, 2, 8, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},   {2, 3, 5, 7, 11, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 2, 4, 5, 9, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1},   {2, 2, 6, 6, 8, 2, 3, 3, 2, 1, 0, 0, 2, 1, 1, 1},
	{1, 2, 7, 8, 10, 3, 2, 1, 2, 2, 1, 3, 0, 2, 4, 1},  {1, 1, 1, 1, 8, 2, 2, 1, 1, 2, 1, 2, 1, 3, 3, 1},
	{2, 5, 3, 4, 13, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},  {1, 3, 4, 4, 8, 1, 1, 2, 3, 0, 0, 0, 0, 1, 1, 1},
	{1, 1, 18, 17, 8, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1}, /* several blocks of windows */
};
/* Rows so long that sums come in several blocks; sums of so many products that they come in several parts. */
static const struct shape large[] = {
	{1, 1, 3, 1500, 1, 2, 3, 1, 1, 1, 0, 1, 1, 1, 1, 1},
	{1, 60, 4, 3, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 60, 4, 3, 9, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	{1, 600, 1, 1, 2, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
};

START_TEST(random_calls)
{
	check_shapes(NPUMEM_KERNEL_CONV2D, shapes, sizeof(shapes) / sizeof(shapes[0]), 11);
	check_shapes(NPUMEM_KERNEL_CONV2D, many_channels, sizeof(many_channels) / sizeof(many_channels[0]), 12);
	check_shapes(NPUMEM_KERNEL_CONV2D, large, sizeof(large) / sizeof(large[0]), 13);
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
			set_up(&c, NPUMEM_KERNEL_CONV2D, &shapes[1], &calls_fxn[t], formats[f], true);
			calls_sample(&c, IN, &state);
			calls_sample(&c, WEIGHTS, &state);
			calls_sample(&c, BIAS, &state);
			check_against_loops(&c, 1 + f % 4);
			calls_free(&c);
		}
}
END_TEST

/* 512 products of all-minimum fx16 operands are 2^39: one more than the accumulator holds. */
START_TEST(wraps_at_40_bits)
{
	for (int64_t test = 0; test < 6; test++) {
		int64_t inputs = 511 + test % 3, outputs = test < 3 ? 2 : 8;
		const struct shape s = {1, inputs, 1, 3, outputs, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1};
		struct calls c;
		set_up(&c, NPUMEM_KERNEL_CONV2D, &s, &calls_fxn[1], (const int64_t[4]){0, 30, 0, 3}, false);
		for (int64_t i = 0; i < inputs * 3; i++)
			calls_put(&c, IN, i, INT16_MIN);
		for (int64_t i = 0; i < inputs * outputs; i++)
			calls_put(&c, WEIGHTS, i, INT16_MIN);
		check_against_loops(&c, 0);
		ck_assert_int_eq(c.call.counts.wrapped, inputs >= 512 ? 3 * outputs : 0);
		ck_assert_int_eq(c.call.counts.macs, 3 * outputs * inputs);
		calls_free(&c);
	}
}
END_TEST

static const struct shape good = {1, 2, 5, 6, 3, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1};

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_INT8, .text = "conv2d: in is int8, but must be fx8 or fx16"},
		{"in", 't', NPUMEM_FX16, .text = "conv2d: out is fx8, but must be fx16 as in is"},
		{"weights", 't', NPUMEM_FX16, .text = "conv2d: weights is fx16, but must be fx8 with fx8 in"},
		{"bias", 't', NPUMEM_FX16, .text = "conv2d: bias is fx16, but must be fx8 as weights is"},
		{"out", 't', NPUMEM_FX16, .text = "conv2d: out is fx16, but must be fx8 as in is"},
		/* Q.7 and Q.3: the bias may have at most 10 (the chapter's own example). */
		{"bias", 'f', 11,
		 .text = "conv2d: bias has 11 frac_bits, more than the 10 of in (7) and weights (3)"},
		{"in", 'f', 6, .text = "conv2d: bias has 10 frac_bits, more than the 9 of in (6) and weights (3)"},
		{"in", 'c', 3, .text = "conv2d: weights has N 2, but the input channels of a group are 3"},
		{"weights", 'n', 3, .text = "conv2d: weights has N 3, but the input channels of a group are 2"},
		{"weights", 'c', 4, .text = "conv2d: bias has C 3, but weights need 4"},
		{"weights", 'h', 6, .text = "the window's h is 6 (kernel 6, dilation 1), more than the 5 of in"},
		{"bias", 'n', 2, .text = "conv2d: bias has N 2, but weights need 1"},
		{"bias", 'c', 4, .text = "conv2d: bias has C 4, but weights need 3"},
		{"bias", 'w', 2, .text = "conv2d: bias has W 2, but weights need 1"},
		{"out", 'n', 2, .text = "conv2d: out has N 2, but in, weights and the window give 1"},
		{"out", 'c', 2, .text = "conv2d: out has C 2, but in, weights and the window give 3"},
		{"out", 'h', 4, .text = "conv2d: out has H 4, but in, weights and the window give 3"},
		{"out", 'w', 4, .text = "conv2d: out has W 4, but in, weights and the window give 5"},
		{.param = NPUMEM_PARAM_RELU,
		 .n_values = 1,
		 .values = {5},
		 .text = "conv2d: relu is number 5, but its choices are 1 to 4: none gen 1 6"},
	};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_CONV2D, &good, &calls_fxn[0], (const int64_t[4]){7, 3, 10, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	c.operands[IN][0].dtype = c.operands[OUT][0].dtype = NPUMEM_FX16;
	c.operands[WEIGHTS][0].dtype = NPUMEM_FP32;
	calls_refused(&c, "conv2d: weights is fp32, but must be fx16 or fx8 with fx16 in");
	calls_free(&c);
}
END_TEST

START_TEST(window_refusals)
{
	static const struct calls_break breaks[] = {
		{.param = NPUMEM_PARAM_STRIDE,
		 .n_values = 2,
		 .values = {0, 1},
		 .text = "conv2d: stride h is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_STRIDE,
		 .n_values = 2,
		 .values = {1, -4},
		 .text = "conv2d: stride w is -4, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_DILATION,
		 .n_values = 2,
		 .values = {1, 0},
		 .text = "conv2d: dilation w is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_DILATION,
		 .n_values = 2,
		 .values = {3, 1},
		 .text = "the window's h is 7 (kernel 3, dilation 3), more than the 5 of in"},
		{.param = NPUMEM_PARAM_DILATION,
		 .n_values = 2,
		 .values = {INT32_MAX, 1},
		 .text = "the window's h is 4294967295 (kernel 3, dilation 2147483647)"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {3, 0, 0, 0},
		 .text = "conv2d: padding top is 3, but must be 0 to 2"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {0, 3, 0, 0},
		 .text = "conv2d: padding bottom is 3, but must be 0 to 2"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {0, 0, 2, 0},
		 .text = "conv2d: padding left is 2, but must be 0 to 1"},
		{.param = NPUMEM_PARAM_PADDING,
		 .n_values = 4,
		 .values = {0, 0, 0, -1},
		 .text = "conv2d: padding right is -1, but must be 0 to 1"},
	};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_CONV2D, &good, &calls_fxn[0], (const int64_t[4]){7, 3, 10, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_free(&c);
}
END_TEST

/* On each way that a convolution can take; also where a single block of outputs is all there is. */
START_TEST(progress)
{
	static const struct shape ways[] = {
		{2, 2, 5, 6, 3, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1}, {2, 2, 5, 6, 9, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1},
		{2, 2, 1, 1, 9, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1}, {1, 2, 5, 6, 1, 3, 2, 1, 1, 0, 0, 0, 0, 1, 1, 1},
		{1, 2, 1, 1, 9, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
	};
	for (unsigned w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		struct calls c;
		set_up(&c, NPUMEM_KERNEL_CONV2D, &ways[w], &calls_fxn[0], (const int64_t[4]){7, 3, 10, 7}, true);
		calls_progress(&c);
		calls_free(&c);
	}
}
END_TEST

/* A pointwise convolution sees one row, here of more than one stretch of sums. */
START_TEST(a_long_row)
{
	enum { LENGTH = 2 * 65536 + 37 };
	struct calls c;
	uint64_t state = 71;
	calls_init(&c, NPUMEM_KERNEL_CONV2D);
	calls_add(&c, "in", NPUMEM_FX8, 4, 1, 2, 1, LENGTH);
	calls_add(&c, "weights", NPUMEM_FX8, 0, 2, 1, 1, 1);
	calls_add(&c, "out", NPUMEM_FX8, 4, 1, 1, 1, LENGTH);
	calls_sample(&c, IN, &state);
	calls_put(&c, WEIGHTS, 0, 3);
	calls_put(&c, WEIGHTS, 1, -2);
	calls_run(&c);
	for (int64_t i = 0; i < LENGTH; i++) {
		int64_t y = 3 * calls_get(&c, IN, i) - 2 * calls_get(&c, IN, LENGTH + i);
		y = y < INT8_MIN ? INT8_MIN : y > INT8_MAX ? INT8_MAX : y;
		if (calls_get(&c, OUT, i) != y)
			ck_abort_msg("output %lld is %lld, not %lld", (long long)i,
				     (long long)calls_get(&c, OUT, i), (long long)y);
	}
	calls_free(&c);
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
	tcase_add_test(tcase, progress);
	tcase_add_test(tcase, a_long_row);
	suite_add_tcase(suite, tcase);
	return suite;
}
