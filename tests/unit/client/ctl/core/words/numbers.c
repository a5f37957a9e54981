#include "tests/support/test.h"

#include "client/ctl/core/words/words.h"

TEST(integers)
{
	static const struct {
		const char *text;
		bool right;
		int64_t value;
	} rows[] = {
		{"0", true, 0},
		{"-12", true, -12},
		{"010", true, 10},
		{"0x1f", true, 31},
		{"9223372036854775807", true, INT64_MAX},
		{"9223372036854775808", false, 0},
		{"", false, 0},
		{"-", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"1.0", false, 0},
		{"0x", false, 0},
		{"0xg", false, 0},
		{"1e3", false, 0},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t value = -1;
		ck_assert_msg(numbers_integer(rows[i].text, &value) == rows[i].right, "\"%s\"", rows[i].text);
		if (rows[i].right)
			ck_assert_int_eq(value, rows[i].value);
	}
}

TEST(four_dims)
{
	struct npumem_dims dims;
	struct npumem_error error = {0};
	ck_assert_int_eq(numbers_dims("--shape", "1,2,3,4", &dims, NULL), 0);
	ck_assert_int_eq(dims.n, 1);
	ck_assert_int_eq(dims.w, 4);
	static const char *const wrong[] = {"1,2,3",   "1,2,3,4,5", "1,2,,4", "1,2,3,",
					    "a,b,c,d", "1,-2,3,4",  "",	      "1;2;3;4"};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		ck_assert_int_eq(numbers_dims("--shape", wrong[i], &dims, NULL), NPUMEM_INVALID);
	ck_assert_int_eq(numbers_dims("--shape", "1,-2,3,4", &dims, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "--shape -2 is negative");
}

TEST(lists)
{
	int64_t values[3];
	unsigned n;
	ck_assert_int_eq(numbers_list("x", "7", values, 3, &n, NULL), 0);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(numbers_list("x", "0,3,63", values, 3, &n, NULL), 0);
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(values[2], 63);
	ck_assert_int_eq(numbers_list("x", "0,3,63,1", values, 3, &n, NULL), NPUMEM_INVALID);
}

TEST(reals)
{
	double value;
	ck_assert(numbers_real("-2.5e-3", &value));
	ck_assert_double_eq(value, -2.5e-3);
	ck_assert(numbers_real("inf", &value));
	ck_assert(!numbers_real("", &value));
	ck_assert(!numbers_real(" 1", &value));
	ck_assert(!numbers_real("1x", &value));
}

TEST(bytes)
{
	static const struct {
		const char *text;
		int64_t value; /* -1: refused */
	} cases[] = {
		{"0", 0},	 {"512", 512}, {"512K", 524288},    {"3M", 3 << 20},
		{"1G", 1 << 30}, {"0x10", 16}, {"3MiB", 3 << 20},   {"0x10K", -1},
		{"K", -1},	 {"", -1},     {"1k", -1},	    {"1KK", -1},
		{"-1K", -1},	 {"1.5K", -1}, {"8589934592G", -1}, {"8589934591G", INT64_C(8589934591) << 30}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t value = 0;
		int status = numbers_bytes("bytes", cases[i].text, &value, NULL);
		ck_assert_msg(!status == (cases[i].value >= 0), "%s", cases[i].text);
		if (!status)
			ck_assert_msg(value == cases[i].value, "%s", cases[i].text);
	}
}
