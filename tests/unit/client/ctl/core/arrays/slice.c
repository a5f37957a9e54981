#include <stdio.h>
#include <string.h>

#include "client/ctl/core/arrays/slice.h"
#include "tests/support/test.h"

static void expect(const char *text, const char *from_to)
{
	const struct npumem_dims shape = {2, 30, 4, 5};
	struct slice slice;
	struct npumem_dims from, to;
	struct npumem_error error = {0};
	char got[128];
	ck_assert_msg(slice_parse(text, &slice, &error) == 0, "\"%s\": %s", text, error.message);
	ck_assert_str_eq(slice.name, "v");
	ck_assert_str_eq(slice.base, "7:base");
	slice_resolve(&slice, &shape, &from, &to);
	snprintf(got, sizeof(got), "%d:%d %d:%d %d:%d %d:%d", (int)from.n, (int)to.n, (int)from.c, (int)to.c,
		 (int)from.h, (int)to.h, (int)from.w, (int)to.w);
	ck_assert_msg(!strcmp(got, from_to), "\"%s\" is %s, not %s", text, got, from_to);
}

TEST(ranges)
{
	expect("v = 7:base[0:1,2:3,0:4,1:5]", "0:1 2:3 0:4 1:5");
	expect("v=7:base[0:1,2:3,0:4,1:5]", "0:1 2:3 0:4 1:5");
	expect("  v  =  7:base [ 0 : 1 , 2 : 3 ]  ", "0:1 2:3 0:4 0:5");
	expect("v = 7:base[:,3:,:2,4]", "0:2 3:30 0:2 4:5");
	expect("v = 7:base[1]", "1:2 0:30 0:4 0:5");
	expect("v = 7:base[]", "0:2 0:30 0:4 0:5");
	expect("v = 7:base", "0:2 0:30 0:4 0:5");
	expect("v = 7:base[0:999]", "0:999 0:30 0:4 0:5"); /* for the daemon to refuse */
}

TEST(refusals)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"v = b[-1]", "counts from the end"},
		{"v = b[0:-1]", "counts from the end"},
		{"v = b[2:2]", "holds nothing"},
		{"v = b[3:2]", "holds nothing"},
		{"v = b[0:1,]", "comma"},
		{"v = b[0:1,,1]", "not one of"},
		{"v = b[0:1", "the ] is missing"},
		{"v = b[", "the ] is missing"},
		{"v = b[a]", "not one of"},
		{"v = b[0::2]", "not one of"},
		{"v = b[0,0,0,0,0]", "more than four"},
		{"v = b[0]x", "after the ranges"},
		{"v = b[99999999999999999999]", "64 bits"},
		{"v = b[9223372036854775807]", "not one of"},
		{"v b[0]", "is not NAME = BASE"},
		{"= b[0]", "is not NAME = BASE"},
		{"v = [0]", "is not NAME = BASE"},
		{"v", "is not NAME = BASE"},
		{"", "is not NAME = BASE"},
		{"b[0] = v", "is not NAME = BASE"},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice slice;
		struct npumem_error error = {0};
		ck_assert_msg(slice_parse(rows[i].text, &slice, &error) == NPUMEM_INVALID, "\"%s\"", rows[i].text);
		ck_assert_msg(strstr(error.message, rows[i].why) != NULL, "\"%s\": %s", rows[i].text,
			      error.message);
	}
}

TEST(long_names)
{
	char text[300];
	struct slice slice;
	memset(text, 'n', sizeof(text));
	memcpy(text + 200, " = b", 5);
	ck_assert_int_eq(slice_parse(text, &slice, NULL), NPUMEM_INVALID);
}
