/* depthwise_conv2d against plain loops, with multipliers, and its refusals. */
#include "tests/unit/daemon/device/kernels/convolutions.h"

static const struct shape shapes[] = {
	/* n i h w o kh kw, stride, padding, dilation, groups */
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},   {2, 3, 5, 7, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3},
	{1, 3, 5, 7, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 3},   /* output c * 2 + j takes input c */
	{1, 2, 6, 7, 16, 3, 2, 2, 1, 1, 0, 1, 0, 1, 1, 2},  /* many to each */
	{2, 4, 9, 8, 4, 3, 3, 2, 2, 0, 1, 0, 1, 1, 1, 4},   /* padding as frameworks give it with a stride of 2 */
	{1, 2, 7, 8, 4, 3, 2, 1, 2, 2, 1, 3, 0, 2, 4, 2},   /* dilated over the edge */
	{1, 2, 8, 11, 2, 2, 3, 3, 4, 0, 1, 2, 0, 1, 2, 2},  /* strides that leave inputs out */
	{1, 3, 7, 7, 3, 7, 7, 1, 1, 0, 0, 0, 0, 1, 1, 3},   /* one output */
	{1, 1, 40, 70, 1, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, /* several blocks of rows */
};

START_TEST(random_calls)
{
	check_shapes(NPUMEM_KERNEL_DEPTHWISE_CONV2D, shapes, sizeof(shapes) / sizeof(shapes[0]), 81);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_UINT8, .text = "depthwise_conv2d: in is uint8, but must be fx8 or fx16"},
		{"in", 'c', 4, .text = "4 input and 6 output channels do not divide into 4 groups"},
		{"weights", 'c', 7, .text = "3 input and 7 output channels do not divide into 3 groups"},
		{"weights", 'n', 3, .text = "weights has N 3, but the input channels of a group are 1"},
		{"weights", 'w', 8, .text = "the window's w is 8 (kernel 8, dilation 1), more than the 7 of in"},
		{"bias", 'f', 20, .text = "bias has 20 frac_bits, more than the 14 of in (7) and weights (7)"},
		{"bias", 'h', 2, .text = "bias has H 2, but weights need 1"},
		{"out", 'c', 3, .text = "out has C 3, but in, weights and the window give 6"},
		{.param = NPUMEM_PARAM_STRIDE, .n_values = 2, .values = {-1, 1}, .text = "stride h is -1"},
	};
	static const struct shape good = {1, 3, 5, 7, 6, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 3};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_DEPTHWISE_CONV2D, &good, &calls_fxn[0], (const int64_t[4]){7, 7, 7, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_depthwise_conv2d(void)
{
	Suite *suite = suite_create("device/kernels/depthwise_conv2d");
	TCase *tcase = tcase_create("depthwise_conv2d");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
