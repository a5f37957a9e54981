/* group_conv2d against plain loops, in few and in many groups, and its refusals. */
#include "tests/unit/daemon/device/kernels/convolutions.h"

static const struct shape shapes[] = {
	/* n i h w o kh kw, stride, padding, dilation, groups */
	{1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},  {2, 4, 5, 7, 6, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2},
	{1, 6, 5, 4, 3, 2, 3, 1, 2, 1, 0, 0, 2, 1, 1, 3},  {2, 4, 5, 6, 18, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2},
	{1, 6, 7, 8, 27, 2, 2, 2, 1, 0, 1, 1, 0, 2, 3, 3}, {1, 6, 3, 5, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 2},
	{2, 4, 3, 5, 20, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 2}, {1, 4, 1, 1, 6, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 2},
	{1, 4, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1},
};

START_TEST(random_calls)
{
	check_shapes(NPUMEM_KERNEL_GROUP_CONV2D, shapes, sizeof(shapes) / sizeof(shapes[0]), 91);
}
END_TEST

START_TEST(refusals)
{
	static const struct calls_break breaks[] = {
		{"in", 't', NPUMEM_FP32, .text = "group_conv2d: in is fp32, but must be fx8 or fx16"},
		{"in", 'c', 5, .text = "group_conv2d: 5 input and 6 output channels do not divide into 2 groups"},
		{"in", 'c', 6, .text = "weights has N 2, but the input channels of a group are 3"},
		{"weights", 'c', 7, .text = "4 input and 7 output channels do not divide into 2 groups"},
		{"weights", 'n', 4, .text = "weights has N 4, but the input channels of a group are 2"},
		{"bias", 'c', 3, .text = "bias has C 3, but weights need 6"},
		{"out", 'w', 6, .text = "out has W 6, but in, weights and the window give 5"},
		{.param = NPUMEM_PARAM_GROUPS,
		 .n_values = 1,
		 .values = {0},
		 .text = "group_conv2d: groups is 0, but must be 1 to 2147483647"},
		{.param = NPUMEM_PARAM_GROUPS,
		 .n_values = 1,
		 .values = {4},
		 .text = "4 input and 6 output channels do not divide into 4 groups"},
		{.param = NPUMEM_PARAM_GROUPS,
		 .n_values = 0,
		 .text = "weights has N 2, but the input channels of a group are 4"},
	};
	static const struct shape good = {1, 4, 5, 7, 6, 3, 3, 1, 1, 0, 0, 0, 0, 1, 1, 2};
	struct calls c;
	set_up(&c, NPUMEM_KERNEL_GROUP_CONV2D, &good, &calls_fxn[0], (const int64_t[4]){7, 7, 7, 7}, true);
	calls_breaks(&c, breaks, sizeof(breaks) / sizeof(breaks[0]));
	calls_break_all(&c);
	calls_progress(&c);
	calls_free(&c);
}
END_TEST

Suite *suite_group_conv2d(void)
{
	Suite *suite = suite_create("device/kernels/group_conv2d");
	TCase *tcase = tcase_create("group_conv2d");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
