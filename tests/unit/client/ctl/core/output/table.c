#include <stdlib.h>
#include <string.h>

#include "client/ctl/core/output/output.h"
#include "tests/support/test.h"

static const char *printed(unsigned within)
{
	static char text[512];
	FILE *file = fmemopen(text, sizeof(text), "w");
	struct table table;
	table_init(&table, "a long name|>1|x");
	table.within = within;
	table.spare = "21";
	static const char *const cells[] = {"b", "1000", "yyyy", "", "7", ""};
	for (unsigned i = 0; i < 6; i++)
		table_cell(&table, "%s", cells[i]);
	ck_assert_ptr_nonnull(file);
	table_print(&table, file);
	fclose(file);
	return text;
}

TEST(columns_line_up)
{
	ck_assert_str_eq(printed(0), "a long name     1  x\nb            1000  yyyy\n                7\n");
	ck_assert_str_eq(printed(23), printed(0));
}

TEST(within_a_width)
{
	ck_assert_str_eq(printed(22), "a long name     1\nb            1000\n                7\n");
	ck_assert_str_eq(printed(17), "a long name     1\nb            1000\n                7\n");
	ck_assert_str_eq(printed(16), "a long name\nb\n\n");
	ck_assert_str_eq(printed(9), "a long na\nb\n\n");
	/* Something must be left to be read. */
	ck_assert_str_eq(printed(2), "a long n\nb\n\n");
}
