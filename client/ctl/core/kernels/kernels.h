/* Kernels as their rows describe them. */
#ifndef CTL_CORE_KERNELS_KERNELS_H
#define CTL_CORE_KERNELS_KERNELS_H

#include <stdio.h>

#include <jansson.h>
#include <npumem/kernels.h>
#include <npumem/numeric.h>

#include "client/ctl/core/words/words.h"

/* roles.c. The words of `run`: which are tensors by role, which are parameters, by the kernel's row. */

/* True where `role` is one of the row's, or of one of its numbered families ("in*": in0, in1, …). */
bool roles_has(const struct npumem_kernel_row *row, const char *role);
bool roles_is_output(const struct npumem_kernel_row *row, const char *role);
/* True where the kernel takes the parameter; all take rounding. */
bool roles_has_param(const struct npumem_kernel_row *row, const char *name);

/* Finds a kernel by name. 0, or INVALID, which says whether one is called nearly so. */
int roles_kernel(const char *name, const struct npumem_kernel_row **row, struct npumem_error *error);

struct roles_word {
	char key[NPUMEM_FIELD_KEY_BYTES];
	const char *value; /* the tensor's name or the parameter's text */
	bool is_role;
};
/* Parses "key=value". 0, or INVALID: what the kernel takes instead. */
int roles_word(const struct npumem_kernel_row *row, const char *text, struct roles_word *word,
	       struct npumem_error *error);

/* describe.c. A kernel as its rows describe it: tensors with their shapes, parameters with what they take,
 * rounding, source.
 */

enum { DESCRIBE_SHAPE_BYTES = 48 };

/* Where the kernel rounds, and what its rule comes from; NULL where the row is missing, which is a defect. */
struct describe_provenance {
	const char *name, *rounding, *source;
};
const struct describe_provenance *describe_provenance(const struct npumem_kernel_row *row);

/* "[1,O,1,1]": the shape that the summary gives for a role (of a family its first name: "in" of "in*"), or "".
 * Returns `text`, DESCRIBE_SHAPE_BYTES long. */
const char *describe_shape(const struct npumem_kernel_row *row, const char *role, char *text);

/* A new object. */
json_t *describe_object(const struct npumem_kernel_row *row);
/* Lines of at most `columns` (0: whatever it takes), words not broken. */
void describe_print(FILE *out, const struct npumem_kernel_row *row, unsigned columns);

/* `text` broken at blanks into lines of at most `columns`, each after the first indented; `at` columns of the
 * first line are taken already. */
void describe_wrap(FILE *out, const char *text, unsigned at, unsigned indent, unsigned columns);

/* question.c. The words of `numeric` as a question. */

#define QUESTION_OPTIONS                                                                                          \
	{"--n", "N", "sum: number of values; products, sums: can N of them overflow?", false},                    \
		{"--dtype", "T", "advise: fx8, fx16, or fx16w8 (fx16 data with fx8 weights and bias)", false},    \
		{"--in-frac", "F", "products: fractional bits of the data", false},                               \
		{"--weights-frac", "F", "products: of the weights", false},                                       \
		{"--bias-frac", "F", "products: of a bias", false},                                               \
		{"--bias", NULL, "products, advise: a bias without its format counts as one more product",        \
		 false},                                                                                          \
	{                                                                                                         \
		"--weights-sum", "W", "products: the sum of |weights| of one output, in integers", false          \
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
