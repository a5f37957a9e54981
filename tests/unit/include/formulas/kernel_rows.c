#include <string.h>

#include <npumem/kernels.h>

#include "tests/support/test.h"

/* Every row is found by name and number, and names only parameters that exist. */
TEST(rows)
{
	ck_assert_uint_gt(npumem_n_kernel_rows, 0);
	for (unsigned i = 0; i < npumem_n_kernel_rows; i++) {
		const struct npumem_kernel_row *row = &npumem_kernel_rows[i];
		ck_assert_ptr_eq(npumem_kernel_by_name(row->name), row);
		ck_assert_ptr_eq(npumem_kernel_by_number(row->number), row);
		ck_assert_ptr_nonnull(strchr(row->roles, '>'));
		char parameters[512];
		ck_assert_uint_lt(strlen(row->parameters), sizeof(parameters));
		strcpy(parameters, row->parameters);
		for (char *name = strtok(parameters, " "); name; name = strtok(NULL, " "))
			ck_assert_msg(npumem_param_by_name(name) != NULL, "%s takes %s, which has no row",
				      row->name, name);
	}
	for (unsigned i = 0; i < npumem_n_param_rows; i++) {
		const struct npumem_param_row *row = &npumem_param_rows[i];
		ck_assert_ptr_eq(npumem_param_by_name(row->name), row);
		ck_assert_ptr_eq(npumem_param_by_number(row->number), row);
	}
	ck_assert_ptr_null(npumem_kernel_by_name("conv3d"));
	ck_assert_ptr_null(npumem_kernel_by_name(NULL));
	ck_assert_ptr_null(npumem_kernel_by_number(0));
	ck_assert_ptr_null(npumem_param_by_name("strides"));
	ck_assert_ptr_null(npumem_param_by_name(NULL));
	ck_assert_ptr_null(npumem_param_by_number(0));
}

TEST(parse)
{
	struct npumem_param param;
	ck_assert_int_eq(npumem_param_parse("stride", "1,-2", &param, NULL), 0);
	ck_assert_int_eq(param.number, NPUMEM_PARAM_STRIDE);
	ck_assert_uint_eq(param.n_values, 2);
	ck_assert_int_eq(param.values[0], 1);
	ck_assert_int_eq(param.values[1], -2);
	ck_assert_int_eq(
		npumem_param_parse("padding", "9223372036854775807,0,-9223372036854775808,3", &param, NULL), 0);
	ck_assert_uint_eq(param.n_values, 4);
	ck_assert_int_eq(param.values[0], INT64_MAX);
	ck_assert_int_eq(param.values[2], INT64_MIN);
}

/* The choices "none gen 1 6" are words, counted from 1; "1" is the third. */
TEST(parse_choice)
{
	static const char *const words[] = {"none", "gen", "1", "6"};
	for (int i = 0; i < 4; i++) {
		struct npumem_param param;
		ck_assert_int_eq(npumem_param_parse("relu", words[i], &param, NULL), 0);
		ck_assert_uint_eq(param.n_values, 1);
		ck_assert_int_eq(param.values[0], i + 1);
	}
	struct npumem_param param;
	ck_assert_int_eq(npumem_param_parse("rounding", "up", &param, NULL), 0);
	ck_assert_int_eq(param.values[0], NPUMEM_UP);
}

TEST(parse_refused)
{
	static const struct {
		const char *name, *text, *part;
	} cases[] = {
		{"strid", "1,2", "no parameter \"strid\""},
		{"stride", "1", "stride takes 2 integers (h,w), not 1 value"},
		{"stride", "1,2,3", "stride takes 2 integers (h,w), not 3 values"},
		{"padding", "1,2,3,4,5,6,7,8,9", "padding takes 4 integers (top,bottom,left,right), not 9 values"},
		{"stride", "", "stride takes 2 integers (h,w), not \"\""},
		{"stride", "1,", "not \"\""},
		{"stride", "1,x", "not \"x\""},
		{"stride", "1,2x", "not \"2x\""},
		{"stride", "1, 2", "not \" 2\""},
		{"stride", "1,+2", "not \"+2\""},
		{"stride", "1,-", "not \"-\""},
		{"stride", "1,9223372036854775808", "not \"9223372036854775808\""},
		{"relu", "7", "relu takes one of none, gen, 1, 6, not \"7\""},
		{"relu", "gen1", "not \"gen1\""},
		{"relu", "ge", "not \"ge\""},
		{"relu", "gen 1", "not \"gen 1\""},
		{"relu", "", "not \"\""},
		{"relu", "gen,1", "not 2 values"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct npumem_error error = {0};
		struct npumem_param param = {.number = 77};
		ck_assert_int_eq(npumem_param_parse(cases[i].name, cases[i].text, &param, &error), NPUMEM_INVALID);
		ck_assert_msg(strstr(error.message, cases[i].part), "\"%s\" does not say \"%s\"", error.message,
			      cases[i].part);
		ck_assert_int_eq(param.number, 77);
	}
}
