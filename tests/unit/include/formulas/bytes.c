
#include <npumem/types.h>

#include "tests/support/test.h"

TEST(sizes_are_read)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {{"0", 0},
		     {"65536", 65536},
		     {"064", 64},
		     {"64K", 65536},
		     {"64KiB", 65536},
		     {"3M", 3 << 20},
		     {"3MiB", 3 << 20},
		     {"1G", 1 << 30},
		     {"8GiB", INT64_C(8) << 30},
		     {"9223372036854775807", INT64_MAX},
		     {"8589934591G", INT64_C(8589934591) << 30}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t bytes = -1;
		ck_assert_msg(npumem_bytes_parse(cases[i].text, &bytes), "%s", cases[i].text);
		ck_assert_int_eq(bytes, cases[i].bytes);
	}
}

TEST(what_is_none_is_refused)
{
	static const char *const cases[] = {"",
					    "K",
					    "KiB",
					    " 1",
					    "1 ",
					    "1 K",
					    "-1",
					    "+1",
					    "1k",
					    "1KB",
					    "1Ki",
					    "1KiBB",
					    "1iB",
					    "1B",
					    "0x10",
					    "1.5K",
					    "1KK",
					    "1T",
					    "1e3",
					    "9223372036854775808",
					    "8589934592G",
					    "18446744073709551616",
					    "99999999999999999999999999"};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t bytes = -7;
		ck_assert_msg(!npumem_bytes_parse(cases[i], &bytes), "%s", cases[i]);
		ck_assert_int_eq(bytes, -7);
	}
}

TEST(sizes_are_told_exactly)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {{0, "0"},
		     {1023, "1023"},
		     {1024, "1 KiB"},
		     {1536, "1536"},
		     {(uint64_t)300 << 20, "300 MiB"},
		     {(uint64_t)64 << 30, "64 GiB"},
		     {(uint64_t)2048 << 30, "2048 GiB"},
		     {UINT64_MAX, "18446744073709551615"}};
	char text[NPUMEM_BYTES_TEXT_BYTES];
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_str_eq(npumem_bytes_text(cases[i].bytes, text), cases[i].text);
}
