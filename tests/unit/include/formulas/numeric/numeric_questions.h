/* Questions about kernels as one line: "in=1,64,32,32:11 weights=64,32,5,5:15 bias=:20 weights#5000 stride=1,1".
 */
#ifndef TESTS_NUMERIC_QUESTIONS_H
#define TESTS_NUMERIC_QUESTIONS_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <npumem/numeric.h>

struct questions {
	struct npumem_advise advise;
	char roles[NPUMEM_OPERANDS_MAX][32];
	struct npumem_numeric_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
};

static inline void questions_word(struct questions *to, const char *word)
{
	struct npumem_advise *advise = &to->advise;
	const char *value = strchr(word, '=') + 1, *frac_bits = strchr(value, ':');
	char key[32];
	snprintf(key, sizeof(key), "%.*s", (int)(value - 1 - word), word);
	if (npumem_param_by_name(key)) {
		ck_assert_int_eq(npumem_param_parse(key, value, &to->params[advise->n_params++], NULL), 0);
		return;
	}
	struct npumem_numeric_operand *operand = &to->operands[advise->n_operands];
	struct npumem_dims *shape = &operand->shape;
	*operand = (struct npumem_numeric_operand){.frac_bits = NPUMEM_ANY};
	operand->role = strcpy(to->roles[advise->n_operands++], key);
	if (frac_bits)
		operand->frac_bits = atoll(frac_bits + 1);
	if (frac_bits && strchr(frac_bits, '#'))
		operand->weights_sum = atoll(strchr(frac_bits, '#') + 1);
	int n = sscanf(value, "%lld,%lld,%lld,%lld", (long long *)&shape->n, (long long *)&shape->c,
		       (long long *)&shape->h, (long long *)&shape->w);
	if (n >= 2 && n < 4)
		shape->w = 1;
	if (n == 2)
		shape->h = 1;
}

static inline const struct npumem_advise *questions_read(struct questions *to, const char *kernel, int data,
							 int weights, const char *words)
{
	char text[600];
	snprintf(text, sizeof(text), "%s", words);
	*to = (struct questions){.advise = {.kernel = kernel, .data_dtype = data, .weights_dtype = weights}};
	to->advise.operands = to->operands;
	to->advise.params = to->params;
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		questions_word(to, word);
	return &to->advise;
}

static inline struct npumem_advice questions_answer(const char *kernel, int data, int weights, const char *words)
{
	struct npumem_error error = {0};
	struct npumem_advice advice;
	struct questions to;
	int status = npumem_advise(questions_read(&to, kernel, data, weights, words), &advice, &error);
	ck_assert_msg(status == 0, "%s %s: %s", kernel, words, error.message);
	return advice;
}

#endif
