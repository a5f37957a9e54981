/* From words to a numeric question: a row for each kind. Checks how things are written, not what they mean. */
#include "client/ctl/core/kernels/kernels.h"

#include <inttypes.h>
#include <string.h>

#include "client/ctl/core/words/words.h"

/* ---- kinds ---- */

static int read_type(const char *text, bool with_weights, int *data, int *weights, struct npumem_error *error)
{
	bool mixed = with_weights && !strcmp(text, "fx16w8");
	*data = mixed ? NPUMEM_FX16 : npumem_dtype_parse(text);
	*weights = mixed ? NPUMEM_FX8 : with_weights ? *data : 0;
	if (npumem_dtype_is_fixed(*data))
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "\"%.40s\" is not fx8%s", text,
				with_weights ? ", fx16 or fx16w8" : " or fx16");
}

static int read_pair(const struct args *args, struct question *question, struct npumem_error *error)
{
	int status = npumem_format_parse(args->words[1], &question->numeric.x, error);
	return status ? status : npumem_format_parse(args->words[2], &question->numeric.y, error);
}

static int read_sum(const struct args *args, struct question *question, struct npumem_error *error)
{
	if (!args_has(args, "--n"))
		return npumem_error_set(error, NPUMEM_INVALID, "sum needs --n N");
	int status = npumem_format_parse(args->words[1], &question->numeric.x, error);
	return status ? status : spec_count(args, "--n", &question->numeric.n, error);
}

static int read_terms(const struct args *args, struct question *question, struct npumem_error *error)
{
	struct npumem_terms *terms = &question->numeric.terms;
	bool products = !strcmp(args->words[0], "products");
	npumem_terms_init(terms);
	terms->has_bias = args_has(args, "--bias") || args_has(args, "--bias-frac");
	int status = read_type(args->words[1], products, &terms->data_dtype, &terms->weights_dtype, error);
	if (!status)
		status = spec_count(args, "--n", &terms->n, error);
	if (!status)
		status = spec_count(args, "--in-frac", &terms->data_frac_bits, error);
	if (!status)
		status = spec_count(args, "--weights-frac", &terms->weights_frac_bits, error);
	if (!status)
		status = spec_count(args, "--bias-frac", &terms->bias_frac_bits, error);
	return status ? status : spec_count(args, "--weights-sum", &terms->weights_sum, error);
}

/* ---- a kernel's tensors ---- */

/* One of the parts between colons: "1,64,32,32", "Q.11", "sum=5000". */
static int read_part(const char *role, const char *part, struct npumem_numeric_operand *operand,
		     struct npumem_error *error)
{
	int64_t extents[4] = {1, 1, 1, 1};
	unsigned n;
	if (!strncmp(part, "sum=", 4))
		return numbers_count(role, part + 4, &operand->weights_sum, error);
	if (part[0] == 'Q' && part[1] == '.')
		return numbers_count(role, part + 2, &operand->frac_bits, error);
	if (part[0] == 'Q')
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s: \"%.40s\" has to be Q.n: the integer bits follow from the type", role,
					part);
	int status = numbers_list(role, part, extents, 4, &n, error);
	operand->shape = (struct npumem_dims){extents[0], extents[1], extents[2], extents[3]};
	return status;
}

static int read_operand(struct question *question, const char *role, const char *text, struct npumem_error *error)
{
	struct npumem_advise *advise = &question->numeric.advise;
	char parts[160], *at = parts;
	int status = 0;
	if (advise->n_operands == NPUMEM_OPERANDS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "more than %d tensors", NPUMEM_OPERANDS_MAX);
	if (strlen(role) >= NPUMEM_FIELD_KEY_BYTES || strlen(text) >= sizeof(parts))
		return npumem_error_set(error, NPUMEM_INVALID, "\"%.40s=%.60s\" is too long", role, text);
	struct npumem_numeric_operand *operand = &question->operands[advise->n_operands];
	operand->role = strcpy(question->roles[advise->n_operands], role);
	operand->frac_bits = NPUMEM_ANY;
	advise->n_operands++;
	strcpy(parts, text);
	while (at && !status) {
		char *end = strchr(at, ':');
		if (end)
			*end++ = 0;
		status = read_part(role, at, operand, error);
		at = end;
	}
	return status;
}

static int read_word(struct question *question, const char *word, struct npumem_error *error)
{
	struct npumem_advise *advise = &question->numeric.advise;
	char key[NPUMEM_FIELD_KEY_BYTES];
	size_t length = strcspn(word, "=");
	if (!word[length] || !length || !word[length + 1] || length >= sizeof(key))
		return npumem_error_set(error, NPUMEM_INVALID,
					"\"%.60s\" is neither role=N,C,H,W:Q.F nor param=value", word);
	memcpy(key, word, length);
	key[length] = 0;
	if (!npumem_param_by_name(key))
		return read_operand(question, key, word + length + 1, error);
	if (advise->n_params == NPUMEM_PARAMS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID, "more than %d parameters", NPUMEM_PARAMS_MAX);
	return npumem_param_parse(key, word + length + 1, &question->params[advise->n_params++], error);
}

static int read_advise(const struct args *args, struct question *question, struct npumem_error *error)
{
	struct npumem_advise *advise = &question->numeric.advise;
	const char *dtype = args_value(args, "--dtype");
	if (!dtype)
		return npumem_error_set(error, NPUMEM_INVALID, "advise needs --dtype fx8, fx16 or fx16w8");
	const struct npumem_kernel_row *row;
	int status = roles_kernel(args->words[1], &row, error);
	if (!status)
		status = read_type(dtype, true, &advise->data_dtype, &advise->weights_dtype, error);
	advise->kernel = args->words[1];
	advise->operands = question->operands;
	advise->params = question->params;
	for (unsigned i = 2; i < args->n_words && !status; i++)
		status = read_word(question, args->words[i], error);
	if (!status && args_has(args, "--bias")) {
		status = read_operand(question, "bias", "Q.0", error);
		question->operands[advise->n_operands - 1].frac_bits = NPUMEM_ANY;
	}
	return status;
}

/* ---- rows ---- */

static const struct row {
	const char *name;
	enum npumem_numeric_kind kind;
	unsigned words; /* after the name; 0: any number from 1 on */
	const char *takes;
	const char *options;
	int (*read)(const struct args *args, struct question *question, struct npumem_error *error);
} rows[] = {
	{"add", NPUMEM_NUMERIC_ADD, 2, "two formats, as Q4.3 Q5.7", "", read_pair},
	{"sub", NPUMEM_NUMERIC_ADD, 2, "two formats, as Q4.3 Q5.7", "", read_pair},
	{"mul", NPUMEM_NUMERIC_MUL, 2, "two formats, as Q4.3 Q5.7", "", read_pair},
	{"div", NPUMEM_NUMERIC_DIV, 2, "two formats, as Q16.16 Q7.10", "", read_pair},
	{"sum", NPUMEM_NUMERIC_SUM, 1, "a format and --n N, as Q3.4 --n 34", "--n", read_sum},
	{"products", NPUMEM_NUMERIC_BOUND, 1, "fx8, fx16 or fx16w8",
	 "--n --in-frac --weights-frac --bias-frac --bias --weights-sum", read_terms},
	{"sums", NPUMEM_NUMERIC_BOUND, 1, "fx8 or fx16", "--n", read_terms},
	{"advise", NPUMEM_NUMERIC_ADVISE, 0, "a kernel and role=N,C,H,W:Q.F... param=value...", "--dtype --bias",
	 read_advise},
};

static int check_options(const struct args *args, const struct row *row, struct npumem_error *error)
{
	static const struct option own[] = {QUESTION_OPTIONS, {NULL, NULL, NULL, false}};
	for (const struct option *option = own; option->name; option++)
		if (args_has(args, option->name) && !lists_has(row->options, option->name))
			return npumem_error_set(error, NPUMEM_INVALID, "%s is not for %s", option->name,
						row->name);
	return 0;
}

int question_parse(const struct args *args, struct question *question, struct npumem_error *error)
{
	const struct row *row = NULL;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]) && !row && args->n_words; i++)
		if (!strcmp(rows[i].name, args->words[0]))
			row = &rows[i];
	if (!row)
		return npumem_error_set(
			error, NPUMEM_INVALID,
			"\"%.40s\" is not one of add, sub, mul, div, sum, products, sums, advise, formats",
			args->n_words ? args->words[0] : "");
	if (row->words ? args->n_words != row->words + 1 : args->n_words < 2)
		return npumem_error_set(error, NPUMEM_INVALID, "%s takes %s", row->name, row->takes);
	int status = check_options(args, row, error);
	*question = (struct question){.numeric = {.kind = row->kind}};
	return status ? status : row->read(args, question, error);
}
