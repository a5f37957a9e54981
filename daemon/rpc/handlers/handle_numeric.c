/* Numeric planning: a message to a question, and its answer to a message. The formulas check and answer; no device
 * or tensor is touched, so that whoever is connected may ask. */
#include <inttypes.h>
#include <string.h>

#include <npumem/numeric.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/wire.h"
#include "proto/convert.h"

/* ---- questions ---- */

/* -1 stands for "not given" in the formulas; given, it is a mistake like any other negative number. */
static int take_frac_bits(bool given, const char *what, int64_t value, int64_t *frac_bits,
			  struct npumem_error *error)
{
	*frac_bits = given ? value : NPUMEM_ANY;
	if (!given || value >= 0)
		return 0;
	return npumem_error_set(error, NPUMEM_INVALID, "%s: %" PRId64 " frac_bits is below 0", what, value);
}

static int take_dtype(const char *what, Npumem__V1__Dtype from, int *dtype, struct npumem_error *error)
{
	*dtype = (int)from;
	return wire_check_enum(&npumem__v1__dtype__descriptor, what, (int)from, error);
}

static int take_format(const Npumem__V1__NumericFormat *message, const char *what, struct npumem_format *format,
		       struct npumem_error *error)
{
	if (!message)
		return npumem_error_set(error, NPUMEM_INVALID, "the format of %s is not given", what);
	*format = (struct npumem_format){message->integer_bits, message->frac_bits};
	return 0;
}

static int take_pair(const Npumem__V1__NumericPair *message, enum npumem_numeric_kind kind,
		     struct npumem_numeric *question, struct npumem_error *error)
{
	int status = take_format(message->x, "x", &question->x, error);

	question->kind = kind;
	return status ? status : take_format(message->y, "y", &question->y, error);
}

static int take_sum(const Npumem__V1__NumericSum *message, struct npumem_numeric *question,
		    struct npumem_error *error)
{
	question->kind = NPUMEM_NUMERIC_SUM;
	question->n = message->n;
	return take_format(message->x, "x", &question->x, error);
}

static int take_terms(const Npumem__V1__NumericTerms *message, struct npumem_numeric *question,
		      struct npumem_error *error)
{
	struct npumem_terms *terms = &question->terms;
	int status = take_dtype("data type", message->data_dtype, &terms->data_dtype, error);

	question->kind = NPUMEM_NUMERIC_BOUND;
	terms->has_bias = message->has_bias;
	terms->n = message->n;
	terms->weights_sum = message->weights_sum;
	if (!status)
		status = take_dtype("weights type", message->weights_dtype, &terms->weights_dtype, error);
	if (!status)
		status = take_frac_bits(message->data_frac_bits_given_case, "data", message->data_frac_bits,
					&terms->data_frac_bits, error);
	if (!status)
		status = take_frac_bits(message->weights_frac_bits_given_case, "weights",
					message->weights_frac_bits, &terms->weights_frac_bits, error);
	return status ? status
		      : take_frac_bits(message->bias_frac_bits_given_case, "bias", message->bias_frac_bits,
				       &terms->bias_frac_bits, error);
}

/* What an advise question points to. */
struct advise_parts {
	struct npumem_numeric_operand operands[NPUMEM_OPERANDS_MAX];
	struct npumem_param params[NPUMEM_PARAMS_MAX];
};

static int take_param(const Npumem__V1__Param *message, struct npumem_param *param, struct npumem_error *error)
{
	if (message->n_values > NPUMEM_PARAM_VALUES_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"parameter %d has %zu values, and at most %d are possible",
					(int)message->key, message->n_values, NPUMEM_PARAM_VALUES_MAX);
	*param = (struct npumem_param){.number = (int)message->key, .n_values = (unsigned)message->n_values};
	for (unsigned i = 0; i < param->n_values; i++)
		param->values[i] = message->values[i];
	return 0;
}

static int take_advise(const Npumem__V1__NumericAdvise *message, struct advise_parts *parts,
		       struct npumem_numeric *question, struct npumem_error *error)
{
	struct npumem_advise *advise = &question->advise;
	int status = take_dtype("data type", message->data_dtype, &advise->data_dtype, error);

	question->kind = NPUMEM_NUMERIC_ADVISE;
	advise->kernel = message->kernel;
	advise->operands = parts->operands;
	advise->params = parts->params;
	if (!status)
		status = take_dtype("weights type", message->weights_dtype, &advise->weights_dtype, error);
	if (!status && (message->n_operands > NPUMEM_OPERANDS_MAX || message->n_params > NPUMEM_PARAMS_MAX))
		return npumem_error_set(error, NPUMEM_INVALID,
					"%zu operands and %zu parameters, and at most %d and %d are possible",
					message->n_operands, message->n_params, NPUMEM_OPERANDS_MAX,
					NPUMEM_PARAMS_MAX);
	for (; advise->n_operands < message->n_operands && !status; advise->n_operands++) {
		const Npumem__V1__NumericOperand *from = message->operands[advise->n_operands];
		struct npumem_numeric_operand *to = &parts->operands[advise->n_operands];

		*to = (struct npumem_numeric_operand){.role = from->role, .weights_sum = from->weights_sum};
		convert_dims_from(from->shape, &to->shape);
		status = take_frac_bits(from->frac_bits_given_case, from->role, from->frac_bits, &to->frac_bits,
					error);
	}
	for (; advise->n_params < message->n_params && !status; advise->n_params++)
		status = take_param(message->params[advise->n_params], &parts->params[advise->n_params], error);
	return status;
}

static int take_question(const Npumem__V1__NumericRequest *message, struct advise_parts *parts,
			 struct npumem_numeric *question, struct npumem_error *error)
{
	switch (message->question_case) {
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADD:
		return take_pair(message->add, NPUMEM_NUMERIC_ADD, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_MUL:
		return take_pair(message->mul, NPUMEM_NUMERIC_MUL, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV:
		return take_pair(message->div, NPUMEM_NUMERIC_DIV, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM:
		return take_sum(message->sum, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_BOUND:
		return take_terms(message->bound, question, error);
	case NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADVISE:
		return take_advise(message->advise, parts, question, error);
	default:
		return npumem_error_set(error, NPUMEM_INVALID,
					"a numeric question of a kind that this daemon does not know");
	}
}

/* ---- answers ---- */

/* Sets a member that is left out where it is NPUMEM_ANY. */
#define PUT_FRAC_BITS(message, MESSAGE, member, MEMBER, from)                                                     \
	do {                                                                                                      \
		if ((from)->member != NPUMEM_ANY) {                                                               \
			(message)->member##_given_case =                                                          \
				NPUMEM__V1__NUMERIC_##MESSAGE##__##MEMBER##_GIVEN_##MEMBER;                       \
			(message)->member = (from)->member;                                                       \
		}                                                                                                 \
	} while (0)

static void put_format(const struct npumem_format *format, Npumem__V1__NumericFormat *message)
{
	npumem__v1__numeric_format__init(message);
	message->integer_bits = format->integer_bits;
	message->frac_bits = format->frac_bits;
}

static void put_bound(const struct npumem_bound *bound, Npumem__V1__NumericBound *message)
{
	npumem__v1__numeric_bound__init(message);
	message->accumulator_bits = bound->accumulator_bits;
	message->low = bound->low;
	message->high = bound->high;
	message->safe = bound->safe;
	message->safe_weights_sum = bound->safe_weights_sum;
	message->least = bound->least;
	message->most = bound->most;
	message->can_overflow = bound->can_overflow;
	message->breaks = (char *)bound->breaks;
}

static void put_terms(const struct npumem_terms *terms, Npumem__V1__NumericTerms *message)
{
	npumem__v1__numeric_terms__init(message);
	message->data_dtype = (Npumem__V1__Dtype)terms->data_dtype;
	message->weights_dtype = (Npumem__V1__Dtype)terms->weights_dtype;
	message->has_bias = terms->has_bias;
	message->n = terms->n;
	message->weights_sum = terms->weights_sum;
	PUT_FRAC_BITS(message, TERMS, data_frac_bits, DATA_FRAC_BITS, terms);
	PUT_FRAC_BITS(message, TERMS, weights_frac_bits, WEIGHTS_FRAC_BITS, terms);
	PUT_FRAC_BITS(message, TERMS, bias_frac_bits, BIAS_FRAC_BITS, terms);
}

/* Of one accumulator, with its submessages beside it. */
struct put_sum {
	Npumem__V1__NumericAccumulator message;
	Npumem__V1__NumericTerms terms;
	Npumem__V1__NumericBound bound;
};

static void put_sum(const struct npumem_sum *sum, struct put_sum *to)
{
	Npumem__V1__NumericAccumulator *message = &to->message;

	npumem__v1__numeric_accumulator__init(message);
	put_terms(&sum->terms, &to->terms);
	put_bound(&sum->bound, &to->bound);
	message->data = (char *)sum->data;
	message->weights = (char *)sum->weights;
	message->bias = (char *)sum->bias;
	message->terms = &to->terms;
	message->bound = &to->bound;
	message->additions = sum->additions;
	message->extra_bits = sum->extra_bits;
	message->available_bits = sum->available_bits;
	message->over_bits = sum->over_bits;
	message->possible = sum->possible;
	message->give_up_data = sum->give_up_data;
	message->give_up_weights = sum->give_up_weights;
	message->advice = (char *)sum->advice;
	PUT_FRAC_BITS(message, ACCUMULATOR, data_frac_bits, DATA_FRAC_BITS, sum);
	PUT_FRAC_BITS(message, ACCUMULATOR, weights_frac_bits, WEIGHTS_FRAC_BITS, sum);
	PUT_FRAC_BITS(message, ACCUMULATOR, bias_frac_bits, BIAS_FRAC_BITS, sum);
}

static int reply_numeric(struct call *call, Npumem__V1__Numeric *message)
{
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_NUMERIC, &message->base, call->error);
}

static int reply_format_result(struct call *call, const struct npumem_format_result *result)
{
	Npumem__V1__Numeric message = NPUMEM__V1__NUMERIC__INIT;
	Npumem__V1__NumericResult to = NPUMEM__V1__NUMERIC_RESULT__INIT;
	Npumem__V1__NumericFormat format, every;

	put_format(&result->format, &format);
	put_format(&result->every, &every);
	to.format = &format;
	to.every = &every;
	to.significant_bits = result->significant_bits;
	to.extra_bits = result->extra_bits;
	to.shift_x = result->shift_x;
	to.shift_y = result->shift_y;
	to.precision_lost = result->precision_lost;
	message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_RESULT;
	message.result = &to;
	return reply_numeric(call, &message);
}

static int reply_bound(struct call *call, const struct npumem_bound *bound)
{
	Npumem__V1__Numeric message = NPUMEM__V1__NUMERIC__INIT;
	Npumem__V1__NumericBound to;

	put_bound(bound, &to);
	message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_BOUND;
	message.bound = &to;
	return reply_numeric(call, &message);
}

static int reply_advice(struct call *call, const struct npumem_advice *advice)
{
	Npumem__V1__Numeric message = NPUMEM__V1__NUMERIC__INIT;
	Npumem__V1__NumericAdvice to = NPUMEM__V1__NUMERIC_ADVICE__INIT;
	Npumem__V1__NumericAccumulator *pointers[NPUMEM_SUMS_MAX];
	struct put_sum sums[NPUMEM_SUMS_MAX];

	for (unsigned i = 0; i < advice->n_sums; i++) {
		put_sum(&advice->sums[i], &sums[i]);
		pointers[i] = &sums[i].message;
	}
	to.n_sums = advice->n_sums;
	to.sums = pointers;
	to.can_overflow = advice->can_overflow;
	to.saturates = advice->saturates;
	PUT_FRAC_BITS(&to, ADVICE, out_frac_bits, OUT_FRAC_BITS, advice);
	PUT_FRAC_BITS(&to, ADVICE, safe_out_frac_bits, SAFE_OUT_FRAC_BITS, advice);
	message.answer_case = NPUMEM__V1__NUMERIC__ANSWER_ADVICE;
	message.advice = &to;
	return reply_numeric(call, &message);
}

int handle_numeric(struct call *call, const Npumem__V1__NumericRequest *request)
{
	struct npumem_numeric question = {.n = 0};
	struct npumem_numeric_answer answer;
	struct advise_parts parts;
	int status = take_question(request, &parts, &question, call->error);

	if (!status)
		status = npumem_numeric(&question, &answer, call->error);
	if (status)
		return status;
	if (answer.kind == NPUMEM_NUMERIC_BOUND)
		return reply_bound(call, &answer.bound);
	if (answer.kind == NPUMEM_NUMERIC_ADVISE)
		return reply_advice(call, &answer.advice);
	return reply_format_result(call, &answer.result);
}
