#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "tests/support/test.h"

static const struct npumem_kernel_row row = {
	.name = "k", .roles = "in* weights bias? >out", .parameters = "stride relu"};

TEST(roles_and_parameters)
{
	ck_assert(roles_has(&row, "in0") && roles_has(&row, "in17") && roles_has(&row, "bias") &&
		  roles_has(&row, "out"));
	ck_assert(!roles_has(&row, "in") && !roles_has(&row, "inx") && !roles_has(&row, "in1234"));
	ck_assert(!roles_has(&row, "bias?") && !roles_has(&row, "weight") && !roles_has(&row, "weightss"));
	ck_assert(!roles_has(&row, ""));
	ck_assert(roles_has_param(&row, "relu") && roles_has_param(&row, "rounding") &&
		  !roles_has_param(&row, "out"));
}

TEST(words)
{
	struct roles_word word;
	struct npumem_error error = {0};
	ck_assert_int_eq(roles_word(&row, "out=7:a=b", &word, NULL), 0);
	ck_assert(word.is_role);
	ck_assert_str_eq(word.value, "7:a=b");
	ck_assert_int_eq(roles_word(&row, "stride=1,2", &word, NULL), 0);
	ck_assert(!word.is_role);
	ck_assert_int_eq(roles_word(&row, "foo=1", &word, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message,
			 "k has no \"foo\"; tensors: inN, weights, bias, out; parameters: stride, relu, rounding");
	error.status = 0;
	ck_assert_int_eq(roles_word(&row, "strid=1", &word, &error), NPUMEM_INVALID);
	ck_assert(strstr(error.message, "relu, rounding; did you mean \"stride\"?"));
	ck_assert_int_ne(roles_word(&row, "out=", &word, NULL), 0);
	ck_assert_int_ne(roles_word(&row, "=x", &word, NULL), 0);
	ck_assert_int_ne(roles_word(&row, "out", &word, NULL), 0);
}

TEST(kernels_by_name)
{
	const struct npumem_kernel_row *found;
	struct npumem_error error = {0};
	ck_assert_int_eq(roles_kernel("conv2d", &found, NULL), 0);
	ck_assert_str_eq(found->name, "conv2d");
	ck_assert_int_eq(roles_kernel("conv2", &found, &error), NPUMEM_INVALID);
	ck_assert(!found);
	ck_assert_str_eq(error.message, "there is no kernel \"conv2\"; did you mean \"conv2d\"?");
}
