#include <string.h>

#include "client/ctl/core/words/words.h"
#include "tests/support/test.h"

/* The words of a line with | between them, or the refusal. */
static const char *split(const char *text)
{
	static char joined[256];
	char line[128], *words[8], *rest;
	struct npumem_error error = {0};
	unsigned n;
	strcpy(line, text);
	joined[0] = 0;
	if (words_split(line, words, 8, &n, &rest, &error))
		return strcpy(joined, error.message);
	for (unsigned i = 0; i < n; i++) {
		strcat(joined, i ? "|" : "");
		strcat(joined, words[i]);
	}
	if (rest)
		strcat(strcat(joined, " then "), rest);
	return joined;
}

TEST(words)
{
	ck_assert_str_eq(split(""), "");
	ck_assert_str_eq(split("  \t"), "");
	ck_assert_str_eq(split("# all of it"), "");
	ck_assert_str_eq(split("one"), "one");
	ck_assert_str_eq(split("  a b\tc  # more"), "a|b|c");
	ck_assert_str_eq(split("view 'v = x[0:1, 0:2]'"), "view|v = x[0:1, 0:2]");
	ck_assert_str_eq(split("\"a \\\" 'b\"c d"), "a \" 'bc|d");
	ck_assert_str_eq(split("'a \\' b"), "a \\|b");
	ck_assert_str_eq(split("a\\ b c#d"), "a b|c#d");
	ck_assert_str_eq(split("'' \"\""), "|");
	ck_assert_str_eq(split("a\\"), "a\\");
	ck_assert_str_eq(split("1 2 3 4 5 6 7 8"), "1|2|3|4|5|6|7|8");
	ck_assert_str_eq(split("1 2 3 4 5 6 7 8 9"), "more than 8 words in a line");
	ck_assert_str_eq(split("a 'b"), "a quote does not end");
	ck_assert_str_eq(split("\""), "a quote does not end");
}

TEST(commands)
{
	ck_assert_str_eq(split("a b; c d"), "a|b then  c d");
	ck_assert_str_eq(split("a;b;c"), "a then b;c");
	ck_assert_str_eq(split(" ; b"), " then  b");
	ck_assert_str_eq(split("a ;"), "a then ");
	ck_assert_str_eq(split("a # b; c"), "a");
	ck_assert_str_eq(split("'a;b' \"c;d\" e\\;f"), "a;b|c;d|e;f");
	ck_assert_str_eq(split("'a'; 'b"), "a then  'b");
	ck_assert_str_eq(split("'a; b"), "a quote does not end");
	ck_assert_str_eq(split("1 2 3 4 5 6 7 8; 9"), "1|2|3|4|5|6|7|8 then  9");
}
