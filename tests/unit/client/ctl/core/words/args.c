#include <string.h>

#include "client/ctl/core/words/words.h"
#include "tests/support/test.h"

static const struct option globals[] = {
	{"--json", NULL, "", false},
	{"--spawn", "OPTIONS", "", true},
	{"--socket", "P", "", false},
	{NULL, NULL, NULL, false},
};
static const struct option own[] = {{"--shape", "S", "", false}, {NULL, NULL, NULL, false}};

static bool foreign(const char *word)
{
	return strchr(word, ' ') || (!args_find(globals, word) && !args_find(own, word));
}

static struct args args;
static const char *words[16];
static struct npumem_error error;

static int parse(int argc, char **argv)
{
	args = (struct args){.tables = {globals, own}, .words = words};
	npumem_error_clear(&error);
	return args_parse(&args, argc, argv, 0, false, foreign, &error);
}

#define PARSE(...) parse(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *), (char *[]){__VA_ARGS__})

TEST(options_and_words)
{
	ck_assert_int_eq(PARSE("a", "--shape", "1,2,3,4", "b", "--json", "-5", "-.5", "-"), 8);
	ck_assert_uint_eq(args.n_words, 5);
	ck_assert_str_eq(words[1], "b");
	ck_assert_str_eq(words[2], "-5");
	ck_assert_str_eq(words[4], "-");
	ck_assert_str_eq(args_value(&args, "--shape"), "1,2,3,4");
	ck_assert(args_has(&args, "--json"));
	ck_assert(!args_has(&args, "--socket"));
	ck_assert_int_eq(PARSE("--shape=a=b", "--shape", "--json"), 3);
	ck_assert_str_eq(args_value(&args, "--shape"), "--json"); /* the last one counts */
	ck_assert(!args_has(&args, "--json"));
	ck_assert_int_eq(PARSE("--", "--shape", "x"), 3);
	ck_assert_uint_eq(args.n_words, 2);
}

TEST(a_value_that_may_be_missing)
{
	PARSE("--spawn", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "");
	ck_assert_str_eq(words[0], "info");
	PARSE("--spawn", "--json", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "");
	PARSE("--spawn", "--npus 4", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "--npus 4");
	PARSE("--spawn", "--allow", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "--allow");
	PARSE("--spawn", "--", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "");
	ck_assert_uint_eq(args.n_words, 1);
	PARSE("--spawn=--json", "info");
	ck_assert_str_eq(args_value(&args, "--spawn"), "--json");
	ck_assert(!args_has(&args, "--json"));
	ck_assert_uint_eq(args.n_words, 1);
}

TEST(refusals)
{
	ck_assert_int_eq(PARSE("--nope"), -1);
	ck_assert_str_eq(error.message, "there is no option --nope");
	ck_assert_int_eq(PARSE("--json=1"), -1);
	ck_assert_str_eq(error.message, "--json takes no value");
	ck_assert_int_eq(PARSE("--shape"), -1);
	ck_assert_str_eq(error.message, "--shape needs a value: S");
	ck_assert_int_eq(PARSE("--shap", "x"), -1);
	char *many[200];
	for (unsigned i = 0; i < 200; i++)
		many[i] = "--json";
	ck_assert_int_eq(parse(200, many), -1);
}
