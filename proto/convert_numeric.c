/* Members of one name on both sides are copied by lists, which serve both directions. Formats and numbers are the
 * formulas' to check. */
#include "proto/convert_numeric.h"

#include <inttypes.h>

#include "proto/convert.h"
#include "proto/wire.h"

#define RESULT_MEMBERS(X) X(significant_bits) X(extra_bits) X(shift_x) X(shift_y) X(precision_lost)
#define BOUND_MEMBERS(X)                                                                                          \
	X(accumulator_bits) X(low) X(high) X(safe) X(safe_weights_sum) X(least) X(most) X(can_overflow)
#define TERMS_MEMBERS(X) X(data_dtype) X(weights_dtype) X(has_bias) X(n) X(weights_sum)
#define SUM_MEMBERS(X)                                                                                            \
	X(additions) X(extra_bits) X(available_bits) X(over_bits) X(possible) X(give_up_data) X(give_up_weights)

#define COPY(member) to->member = from->member;

/* What is not given is NPUMEM_ANY in a struct, and left out of a message. */
#define PUT_FRAC_BITS(MESSAGE, member, MEMBER)                                                                    \
	do {                                                                                                      \
		if (from->member != NPUMEM_ANY) {                                                                 \
			to->member##_given_case = NPUMEM__V1__NUMERIC_##MESSAGE##__##MEMBER##_GIVEN_##MEMBER;     \
			to->member = from->member;                                                                \
		}                                                                                                 \
	} while (0)
#define TAKE_FRAC_BITS(member) to->member = from->member##_given_case ? from->member : NPUMEM_ANY

/* Packing only reads, but the generated structs have no const. */
static char *text_to(const char *text)
{
	return (char *)(uintptr_t)(text ? text : protobuf_c_empty_string);
}

static void format_to(const struct npumem_format *from, Npumem__V1__NumericFormat *to)
{
	npumem__v1__numeric_format__init(to);
	to->integer_bits = from->integer_bits;
	to->frac_bits = from->frac_bits;
}

static void terms_to(const struct npumem_terms *from, Npumem__V1__NumericTerms *to)
{
	npumem__v1__numeric_terms__init(to);
	TERMS_MEMBERS(COPY)
	PUT_FRAC_BITS(TERMS, data_frac_bits, DATA_FRAC_BITS);
	PUT_FRAC_BITS(TERMS, weights_frac_bits, WEIGHTS_FRAC_BITS);
	PUT_FRAC_BITS(TERMS, bias_frac_bits, BIAS_FRAC_BITS);
}

static void terms_from(const Npumem__V1__NumericTerms *from, struct npumem_terms *to)
{
	TERMS_MEMBERS(COPY)
	TAKE_FRAC_BITS(data_frac_bits);
	TAKE_FRAC_BITS(weights_frac_bits);
	TAKE_FRAC_BITS(bias_frac_bits);
}

/* ---- questions ---- */

static int check_counts(size_t n_operands, size_t n_params, struct npumem_error *error)
{
	if (n_operands <= NPUMEM_OPERANDS_MAX && n_params <= NPUMEM_PARAMS_MAX)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID,
				"%zu operands and %zu parameters, and at most %d and %d are possible", n_operands,
				n_params, NPUMEM_OPERANDS_MAX, NPUMEM_PARAMS_MAX);
}

static int check_values(unsigned key, size_t n_values, struct npumem_error *error)
{
	if (n_values <= NPUMEM_PARAM_VALUES_MAX)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "parameter %u has %zu values, and at most %d are possible",
				key, n_values, NPUMEM_PARAM_VALUES_MAX);
}

static void operand_to(const struct npumem_numeric_operand *from, Npumem__V1__NumericOperand *to,
		       Npumem__V1__Dims *shape)
{
	npumem__v1__numeric_operand__init(to);
	convert_dims_to(&from->shape, shape);
	to->role = text_to(from->role);
	to->shape = shape;
	to->weights_sum = from->weights_sum;
	PUT_FRAC_BITS(OPERAND, frac_bits, FRAC_BITS);
}

static int advise_to(const struct npumem_advise *from, struct convert_question *question,
		     struct npumem_error *error)
{
	Npumem__V1__NumericAdvise *to = &question->advise;
	int status = check_counts(from->n_operands, from->n_params, error);

	npumem__v1__numeric_advise__init(to);
	to->kernel = text_to(from->kernel);
	to->data_dtype = (Npumem__V1__Dtype)from->data_dtype;
	to->weights_dtype = (Npumem__V1__Dtype)from->weights_dtype;
	to->operands = question->operand_list;
	to->params = question->param_list;
	for (; !status && to->n_operands < from->n_operands; to->n_operands++) {
		Npumem__V1__NumericOperand *operand = &question->operands[to->n_operands];

		operand_to(&from->operands[to->n_operands], operand, &question->shapes[to->n_operands]);
		to->operands[to->n_operands] = operand;
	}
	for (; !status && to->n_params < from->n_params; to->n_params++) {
		const struct npumem_param *given = &from->params[to->n_params];
		Npumem__V1__Param *param = &question->params[to->n_params];

		status = check_values((unsigned)given->number, given->n_values, error);
		npumem__v1__param__init(param);
		param->key = (Npumem__V1__ParamKey)given->number;
		param->n_values = given->n_values;
		param->values = (int64_t *)(uintptr_t)given->values;
		to->params[to->n_params] = param;
	}
	return status;
}

static Npumem__V1__NumericPair *pair_to(struct convert_question *to)
{
	npumem__v1__numeric_pair__init(&to->pair);
	to->pair.x = &to->x;
	to->pair.y = &to->y;
	return &to->pair;
}

int convert_question_to(const struct npumem_numeric *question, struct convert_question *to,
			struct npumem_error *error)
{
	Npumem__V1__NumericRequest *message = &to->message;

	npumem__v1__numeric_request__init(message);
	format_to(&question->x, &to->x);
	format_to(&question->y, &to->y);
	switch (question->kind) {
	case NPUMEM_NUMERIC_ADD:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADD;
		message->add = pair_to(to);
		return 0;
	case NPUMEM_NUMERIC_MUL:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_MUL;
		message->mul = pair_to(to);
		return 0;
	case NPUMEM_NUMERIC_DIV:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV;
		message->div = pair_to(to);
		return 0;
	case NPUMEM_NUMERIC_SUM:
		npumem__v1__numeric_sum__init(&to->sum);
		to->sum.x = &to->x;
		to->sum.n = question->n;
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM;
		message->sum = &to->sum;
		return 0;
	case NPUMEM_NUMERIC_BOUND:
		terms_to(&question->terms, &to->terms);
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_BOUND;
		message->bound = &to->terms;
		return 0;
	case NPUMEM_NUMERIC_ADVISE:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADVISE;
		message->advise = &to->advise;
		return advise_to(&question->advise, to, error);
	}
	return npumem_error_set(error, NPUMEM_INVALID, "there is no numeric question %d", (int)question->kind);
}

static int format_from(const Npumem__V1__NumericFormat *message, const char *what, struct npumem_format *format,
		       struct npumem_error *error)
{
	if (!message)
		return npumem_error_set(error, NPUMEM_INVALID, "the format of %s is not given", what);
	*format = (struct npumem_format){message->integer_bits, message->frac_bits};
	return 0;
}

static int pair_from(const Npumem__V1__NumericPair *message, enum npumem_numeric_kind kind,
		     struct npumem_numeric *question, struct npumem_error *error)
{
	int status = format_from(message->x, "x", &question->x, error);

	question->kind = kind;
	return status ? status : format_from(message->y, "y", &question->y, error);
}

static int check_dtypes(Npumem__V1__Dtype data, Npumem__V1__Dtype weights, struct npumem_error *error)
{
	int status = wire_check_enum(&npumem__v1__dtype__descriptor, "data type", (int)data, error);

	return status ? status
		      : wire_check_enum(&npumem__v1__dtype__descriptor, "weights type", (int)weights, error);
}

/* -1 stands for "not given" in the formulas; given, it is a mistake like any other negative number. */
static int check_frac_bits(bool given, const char *what, int64_t value, struct npumem_error *error)
{
	if (!given || value >= 0)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s: %" PRId64 " frac_bits is below 0", what, value);
}

static int check_terms(const Npumem__V1__NumericTerms *message, struct npumem_error *error)
{
	int status = check_dtypes(message->data_dtype, message->weights_dtype, error);

	if (!status)
		status = check_frac_bits(message->data_frac_bits_given_case, "data", message->data_frac_bits,
					 error);
	if (!status)
		status = check_frac_bits(message->weights_frac_bits_given_case, "weights",
					 message->weights_frac_bits, error);
	return status ? status
		      : check_frac_bits(message->bias_frac_bits_given_case, "bias", message->bias_frac_bits,
					error);
}

static int operand_from(const Npumem__V1__NumericOperand *from, struct npumem_numeric_operand *to,
			struct npumem_error *error)
{
	*to = (struct npumem_numeric_operand){.role = from->role, .weights_sum = from->weights_sum};
	convert_dims_from(from->shape, &to->shape);
	TAKE_FRAC_BITS(frac_bits);
	return check_frac_bits(from->frac_bits_given_case, from->role, from->frac_bits, error);
}

static int param_from(const Npumem__V1__Param *message, struct npumem_param *param, struct npumem_error *error)
{
	int status = check_values((unsigned)message->key, message->n_values, error);

	if (status)
		return status;
	*param = (struct npumem_param){.number = (int)message->key, .n_values = (unsigned)message->n_values};
	for (unsigned i = 0; i < param->n_values; i++)
		param->values[i] = message->values[i];
	return 0;
}

static int advise_from(const Npumem__V1__NumericAdvise *from, struct convert_advise *parts,
		       struct npumem_advise *to, struct npumem_error *error)
{
	int status = check_dtypes(from->data_dtype, from->weights_dtype, error);

	*to = (struct npumem_advise){.kernel = from->kernel,
				     .data_dtype = (int)from->data_dtype,
				     .weights_dtype = (int)from->weights_dtype,
				     .operands = parts->operands,
				     .params = parts->params};
	if (!status)
		status = check_counts(from->n_operands, from->n_params, error);
	for (; !status && to->n_operands < from->n_operands; to->n_operands++)
		status = operand_from(from->operands[to->n_operands], &parts->operands[to->n_operands], error);
	for (; !status && to->n_params < from->n_params; to->n_params++)
		status = param_from(from->params[to->n_params], &parts->params[to->n_params], error);
	return status;
}

int convert_question_from(const Npumem__V1__NumericRequest *message, struct convert_advise *parts,
			  struct npumem_numeric *question, struct npumem_error *error)
{
	*question = (struct npumem_numeric){.n = 0};
	switch (message->question_case) {
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADD:
		return pair_from(message->add, NPUMEM_NUMERIC_ADD, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_MUL:
		return pair_from(message->mul, NPUMEM_NUMERIC_MUL, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV:
		return pair_from(message->div, NPUMEM_NUMERIC_DIV, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM:
		question->kind = NPUMEM_NUMERIC_SUM;
		question->n = message->sum->n;
		return format_from(message->sum->x, "x", &question->x, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_BOUND:
		question->kind = NPUMEM_NUMERIC_BOUND;
		terms_from(message->bound, &question->terms);
		return check_terms(message->bound, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADVISE:
		question->kind = NPUMEM_NUMERIC_ADVISE;
		return advise_from(message->advise, parts, &question->advise, error);
	default:
		return npumem_error_set(error, NPUMEM_INVALID,
					"a numeric question of a kind that this daemon does not know");
	}
}

/* ---- answers ---- */

static void bound_to(const struct npumem_bound *from, Npumem__V1__NumericBound *to)
{
	npumem__v1__numeric_bound__init(to);
	BOUND_MEMBERS(COPY)
	to->breaks = text_to(from->breaks);
}

static void bound_from(const Npumem__V1__NumericBound *from, struct npumem_bound *to)
{
	BOUND_MEMBERS(COPY)
	convert_text_from(from->breaks, to->breaks, sizeof(to->breaks));
}

static void sum_to(const struct npumem_sum *from, struct convert_sum *sum)
{
	Npumem__V1__NumericAccumulator *to = &sum->message;

	npumem__v1__numeric_accumulator__init(to);
	terms_to(&from->terms, &sum->terms);
	bound_to(&from->bound, &sum->bound);
	to->terms = &sum->terms;
	to->bound = &sum->bound;
	SUM_MEMBERS(COPY)
	to->data = text_to(from->data);
	to->weights = text_to(from->weights);
	to->bias = text_to(from->bias);
	to->advice = text_to(from->advice);
	PUT_FRAC_BITS(ACCUMULATOR, data_frac_bits, DATA_FRAC_BITS);
	PUT_FRAC_BITS(ACCUMULATOR, weights_frac_bits, WEIGHTS_FRAC_BITS);
	PUT_FRAC_BITS(ACCUMULATOR, bias_frac_bits, BIAS_FRAC_BITS);
}

static int sum_from(const Npumem__V1__NumericAccumulator *from, struct npumem_sum *to)
{
	if (!from->terms || !from->bound)
		return -1;
	terms_from(from->terms, &to->terms);
	bound_from(from->bound, &to->bound);
	SUM_MEMBERS(COPY)
	convert_text_from(from->data, to->data, sizeof(to->data));
	convert_text_from(from->weights, to->weights, sizeof(to->weights));
	convert_text_from(from->bias, to->bias, sizeof(to->bias));
	convert_text_from(from->advice, to->advice, sizeof(to->advice));
	TAKE_FRAC_BITS(data_frac_bits);
	TAKE_FRAC_BITS(weights_frac_bits);
	TAKE_FRAC_BITS(bias_frac_bits);
	return 0;
}

static void result_to(const struct npumem_format_result *from, struct convert_answer *answer)
{
	Npumem__V1__NumericResult *to = &answer->result;

	npumem__v1__numeric_result__init(to);
	format_to(&from->format, &answer->format);
	format_to(&from->every, &answer->every);
	to->format = &answer->format;
	to->every = &answer->every;
	RESULT_MEMBERS(COPY)
}

static int result_from(const Npumem__V1__NumericResult *from, struct npumem_format_result *to)
{
	if (!from->format || !from->every)
		return -1;
	to->format = (struct npumem_format){from->format->integer_bits, from->format->frac_bits};
	to->every = (struct npumem_format){from->every->integer_bits, from->every->frac_bits};
	RESULT_MEMBERS(COPY)
	return 0;
}

static void advice_to(const struct npumem_advice *from, struct convert_answer *answer)
{
	Npumem__V1__NumericAdvice *to = &answer->advice;

	npumem__v1__numeric_advice__init(to);
	for (unsigned i = 0; i < from->n_sums; i++) {
		sum_to(&from->sums[i], &answer->sums[i]);
		answer->sum_list[i] = &answer->sums[i].message;
	}
	to->n_sums = from->n_sums;
	to->sums = answer->sum_list;
	to->can_overflow = from->can_overflow;
	to->saturates = from->saturates;
	PUT_FRAC_BITS(ADVICE, out_frac_bits, OUT_FRAC_BITS);
	PUT_FRAC_BITS(ADVICE, safe_out_frac_bits, SAFE_OUT_FRAC_BITS);
}

static int advice_from(const Npumem__V1__NumericAdvice *from, struct npumem_advice *to)
{
	if (from->n_sums > NPUMEM_SUMS_MAX)
		return -1;
	to->can_overflow = from->can_overflow;
	to->has_out = from->out_frac_bits_given_case;
	to->saturates = from->saturates;
	TAKE_FRAC_BITS(out_frac_bits);
	TAKE_FRAC_BITS(safe_out_frac_bits);
	for (to->n_sums = 0; to->n_sums < from->n_sums; to->n_sums++)
		if (sum_from(from->sums[to->n_sums], &to->sums[to->n_sums]))
			return -1;
	return 0;
}

void convert_answer_to(const struct npumem_numeric_answer *answer, struct convert_answer *to)
{
	npumem__v1__numeric__init(&to->message);
	if (answer->kind == NPUMEM_NUMERIC_BOUND) {
		to->message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_BOUND;
		to->message.bound = &to->bound;
		bound_to(&answer->bound, &to->bound);
	} else if (answer->kind == NPUMEM_NUMERIC_ADVISE) {
		to->message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_ADVICE;
		to->message.advice = &to->advice;
		advice_to(&answer->advice, to);
	} else {
		to->message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_RESULT;
		to->message.result = &to->result;
		result_to(&answer->result, to);
	}
}

int convert_answer_from(const Npumem__V1__Numeric *message, struct npumem_numeric_answer *answer)
{
	bool is_bound = answer->kind == NPUMEM_NUMERIC_BOUND, is_advice = answer->kind == NPUMEM_NUMERIC_ADVISE;

	switch (message->answer_case) {
	case NPUMEM__V1__NUMERIC__ANSWER_BOUND:
		if (is_bound)
			bound_from(message->bound, &answer->bound);
		return is_bound ? 0 : -1;
	case NPUMEM__V1__NUMERIC__ANSWER_ADVICE:
		return is_advice ? advice_from(message->advice, &answer->advice) : -1;
	case NPUMEM__V1__NUMERIC__ANSWER_RESULT:
		return is_bound || is_advice ? -1 : result_from(message->result, &answer->result);
	default:
		return -1;
	}
}
