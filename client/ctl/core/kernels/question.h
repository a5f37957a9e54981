/* The words of `numeric` as a question. */
#ifndef CTL_CORE_QUESTION_H
#define CTL_CORE_QUESTION_H

#include <npumem/numeric.h>

#include "client/ctl/core/words/args.h"

#define QUESTION_OPTIONS                                                                                          \
	{"--n", "N", "sum: how many values; products, sums: asks about N of them", false},                        \
		{"--dtype", "T", "advise: fx8, fx16, or fx16w8 (fx16 data with fx8 weights and bias)", false},    \
		{"--in-frac", "F", "products: fractional bits of the data", false},                               \
		{"--weights-frac", "F", "products: of the weights", false},                                       \
		{"--bias-frac", "F", "products: of a bias", false},                                               \
		{"--bias", NULL, "products, advise: a bias without its format counts as one more product",        \
		 false},                                                                                          \
	{                                                                                                         \
		"--weights-sum", "W", "products: what the |weights| of one output add up to, as integers", false  \
	}

/* A question with what it points to; stays where it is. */
struct question {
	struct npumem_numeric numeric;
	char roles[NPUMEM_OPERANDS_MAX][NPUMEM_FIELD_KEY_BYTES];
	struct npumem_numeric_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
};

/* Reads "mul Q4.3 Q5.7" and the like from the words and options of a command. 0, or INVALID: what it takes.
 * Whether the question makes sense is for the formulas to say. */
int question_parse(const struct args *args, struct question *question, struct npumem_error *error);

#endif
