#include <string.h>

#include "client/ctl/core/words/words.h"
#include "tests/support/test.h"

static const char *nearest(const char *word, const char *list)
{
	static struct suggest suggest;
	suggest_init(&suggest, word);
	suggest_offer_list(&suggest, list);
	return suggest.best;
}

TEST(slips_of_the_pen)
{
	static const char list[] = "in weights bias? >out stride padding dilation relu";
	ck_assert_str_eq(nearest("strid", list), "stride");
	ck_assert_str_eq(nearest("stirde", list), "stride");
	ck_assert_str_eq(nearest("wieghts", list), "weights");
	ck_assert_str_eq(nearest("ou", list), "out");
	ck_assert_str_eq(nearest("biass", list), "bias");
	ck_assert_str_eq(nearest("w1", "w_1 w_2"), "w_1");
	ck_assert_str_eq(nearest("conv2", "conv2d group_conv2d"), "conv2d");
	ck_assert_str_eq(nearest("conv", "concat conv2d"), "conv2d");
	ck_assert_str_eq(nearest("ren", "run rename"), "rename");
	ck_assert_str_eq(nearest("al", "load alloc"), "alloc");
}

TEST(other_words_are_none)
{
	char text[SUGGEST_TEXT_BYTES], longest[3 * SUGGEST_WORD_BYTES];
	struct suggest suggest;
	ck_assert_str_eq(nearest("foobar", "stride padding relu"), "");
	ck_assert_str_eq(nearest("x", "y"), "");
	ck_assert_str_eq(nearest("", "a b"), "");
	ck_assert_str_eq(nearest("x", ""), "");
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	ck_assert_str_eq(nearest(longest, "a"), "");
	ck_assert_str_eq(nearest("aaa", longest), "");
	suggest_init(&suggest, "strid");
	ck_assert_str_eq(suggest_text(&suggest, text), "");
	suggest_offer(&suggest, "stride");
	ck_assert_str_eq(suggest_text(&suggest, text), "; did you mean \"stride\"?");
}
