#include <string.h>

#include "client/ctl/core/kernels/kernels.h"
#include "tests/support/test.h"

static const struct option options[] = {QUESTION_OPTIONS, {NULL, NULL, NULL, false}};

static bool is_foreign(const char *word)
{
	return word == NULL;
}

/* Parses a line as npumemctl would; returns question_parse's. */
static int parse(const char *line, struct question *question, struct npumem_error *error)
{
	static char text[512];
	static const char *words[32];
	char *argv[32];
	int argc = 0;
	struct args args = {.tables = {options}, .words = words};
	ck_assert_uint_lt(strlen(line), sizeof(text));
	strcpy(text, line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	npumem_error_clear(error);
	ck_assert_msg(args_parse(&args, argc, argv, 0, false, is_foreign, error) == argc, "%s", error->message);
	return question_parse(&args, question, error);
}

static struct question parsed(const char *line)
{
	static struct question question;
	struct npumem_error error;
	ck_assert_msg(parse(line, &question, &error) == 0, "%s: %s", line, error.message);
	return question;
}

TEST(formats)
{
	static const struct {
		const char *line;
		enum npumem_numeric_kind kind;
	} cases[] = {
		{"add Q4.3 Q-5.7", NPUMEM_NUMERIC_ADD},
		{"sub Q4.3 Q-5.7", NPUMEM_NUMERIC_ADD},
		{"mul Q4.3 Q-5.7", NPUMEM_NUMERIC_MUL},
		{"div Q4.3 Q-5.7", NPUMEM_NUMERIC_DIV},
	};
	for (unsigned i = 0; i < 4; i++) {
		struct question question = parsed(cases[i].line);
		ck_assert_int_eq(question.numeric.kind, cases[i].kind);
		ck_assert_int_eq(question.numeric.x.integer_bits, 4);
		ck_assert_int_eq(question.numeric.y.integer_bits, -5);
		ck_assert_int_eq(question.numeric.y.frac_bits, 7);
	}
	struct question question = parsed("sum --n 34 Q3.4");
	ck_assert_int_eq(question.numeric.kind, NPUMEM_NUMERIC_SUM);
	ck_assert_int_eq(question.numeric.n, 34);
	ck_assert_int_eq(question.numeric.x.frac_bits, 4);
}

TEST(terms)
{
	struct question question = parsed("products fx16w8 --n 12 --in-frac 11 --weights-frac 7 --bias-frac 0 "
					  "--weights-sum 99");
	const struct npumem_terms *to = &question.numeric.terms;
	ck_assert_int_eq(question.numeric.kind, NPUMEM_NUMERIC_BOUND);
	ck_assert(to->data_dtype == NPUMEM_FX16 && to->weights_dtype == NPUMEM_FX8);
	ck_assert(to->data_frac_bits == 11 && to->weights_frac_bits == 7 && to->bias_frac_bits == 0);
	ck_assert(to->has_bias && to->n == 12 && to->weights_sum == 99);
	question = parsed("products fx8 --bias");
	ck_assert(to->data_dtype == NPUMEM_FX8 && to->weights_dtype == NPUMEM_FX8 && to->has_bias);
	ck_assert(to->data_frac_bits == NPUMEM_ANY && to->bias_frac_bits == NPUMEM_ANY);
	question = parsed("sums fx16");
	ck_assert(to->data_dtype == NPUMEM_FX16 && to->weights_dtype == 0 && !to->has_bias);
}

TEST(kernels)
{
	static struct question question;
	struct npumem_error error;
	int status =
		parse("advise conv2d --dtype fx16w8 in=1,64,32,32:Q.11 weights=64,32,5,5:sum=900:Q.7 stride=1,2 "
		      "out=Q.8 bias=32",
		      &question, &error);
	ck_assert_msg(status == 0, "%s", error.message);
	const struct npumem_advise *advise = &question.numeric.advise;
	ck_assert_int_eq(question.numeric.kind, NPUMEM_NUMERIC_ADVISE);
	ck_assert_str_eq(advise->kernel, "conv2d");
	ck_assert(advise->data_dtype == NPUMEM_FX16 && advise->weights_dtype == NPUMEM_FX8);
	ck_assert_uint_eq(advise->n_operands, 4);
	ck_assert_str_eq(advise->operands[0].role, "in");
	ck_assert_int_eq(advise->operands[0].shape.c, 64);
	ck_assert_int_eq(advise->operands[0].frac_bits, 11);
	ck_assert_int_eq(advise->operands[1].frac_bits, 7);
	ck_assert_int_eq(advise->operands[1].weights_sum, 900);
	ck_assert_int_eq(advise->operands[2].shape.n, 0); /* not given */
	ck_assert_int_eq(advise->operands[2].frac_bits, 8);
	ck_assert_int_eq(advise->operands[3].shape.n, 32); /* what is left out is 1 */
	ck_assert_int_eq(advise->operands[3].shape.w, 1);
	ck_assert_int_eq(advise->operands[3].frac_bits, NPUMEM_ANY);
	ck_assert_uint_eq(advise->n_params, 1);
	ck_assert_int_eq(advise->params[0].values[1], 2);
	ck_assert_int_eq(parse("advise matmul --dtype fx8 --bias left=7,100", &question, &error), 0);
	ck_assert_uint_eq(advise->n_operands, 2);
	ck_assert_str_eq(advise->operands[1].role, "bias");
	ck_assert(advise->operands[1].shape.n == 0 && advise->operands[1].frac_bits == NPUMEM_ANY);
}

TEST(refusals)
{
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"", "\"\" is not one of add, sub, mul, div, sum, products, sums, advise"},
		{"pow Q4.3 Q5.7", "\"pow\" is not one of"},
		{"mul Q4.3", "mul takes two formats, as Q4.3 Q5.7"},
		{"mul Q4.3 Q5.7 Q1.1", "mul takes two formats"},
		{"mul Q4.3 5.7", "\"5.7\" is not a format"},
		{"mul Q4.3 Q5.7 --bias", "--bias is not for mul"},
		{"sum Q4.3", "sum needs --n N"},
		{"sum Q4.3 --n x", "--n \"x\" is not an integer"},
		{"products", "products takes fx8, fx16 or fx16w8"},
		{"products int8", "\"int8\" is not fx8, fx16 or fx16w8"},
		{"products fx8 --dtype fx8", "--dtype is not for products"},
		{"products fx8 --in-frac -1", "--in-frac -1 is negative"},
		{"sums fx16w8", "\"fx16w8\" is not fx8 or fx16"},
		{"sums fx16 --bias-frac 3", "--bias-frac is not for sums"},
		{"advise", "advise takes a kernel and role=N,C,H,W:Q.F... param=value..."},
		{"advise conv2d", "advise needs --dtype fx8, fx16 or fx16w8"},
		{"advise conv2d --dtype fx32", "\"fx32\""},
		{"advise conv2d --dtype fx8 in", "\"in\" is neither role=N,C,H,W:Q.F nor param=value"},
		{"advise conv2d --dtype fx8 in=", "\"in=\" is neither"},
		{"advise conv2d --dtype fx8 =1", "\"=1\" is neither"},
		{"advise conv2d --dtype fx8 a_role_that_is_far_too_long=1", "is neither"},
		{"advise conv2d --dtype fx8 in=1,2,3,4,5", "in takes at most 4 numbers"},
		{"advise conv2d --dtype fx8 in=1,2:Q3.4", "in: \"Q3.4\" has to be Q.n"},
		{"advise conv2d --dtype fx8 in=1,2:Q.x", "in \"x\" is not an integer"},
		{"advise conv2d --dtype fx8 in=1,2:", "in \"\" is not a list of integers"},
		{"advise conv2d --dtype fx8 in=1,2:sum=-4", "in -4 is negative"},
		{"advise conv2d --dtype fx8 stride=1", "parameter stride takes 2 integers"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static struct question question;
		struct npumem_error error;
		ck_assert_int_eq(parse(cases[i].line, &question, &error), NPUMEM_INVALID);
		ck_assert_msg(strstr(error.message, cases[i].part), "%s: \"%s\" does not say \"%s\"",
			      cases[i].line, error.message, cases[i].part);
	}
}

TEST(more_words_than_there_is_room_for)
{
	static const char *words[3 + NPUMEM_OPERANDS_MAX + 1] = {"advise", "conv2d"};
	static struct question question;
	for (unsigned i = 2; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = "in=1";
	struct args args = {.tables = {options}, .words = words, .n_words = 2 + NPUMEM_OPERANDS_MAX};
	struct npumem_error error = {0};
	args.given[0].option = args_find(options, "--dtype");
	args.given[0].value = "fx8";
	args.n_given = 1;
	ck_assert_int_eq(question_parse(&args, &question, NULL), 0);
	args.n_words++;
	ck_assert_int_eq(question_parse(&args, &question, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "more than 40 tensors");
	npumem_error_clear(&error);
	for (unsigned i = 2; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = "stride=1,1";
	ck_assert_int_eq(question_parse(&args, &question, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "more than 40 parameters");
}
