/* Numeric planning by the daemon: the same questions and answers as numeric.h, over the wire. */
#include "client/lib/engine.h"
#include "client/lib/message.h"
#include "client/lib/reply.h"
#include "proto/convert.h"

/* ---- questions ---- */

/* A question's submessages. */
struct asked {
	Npumem__V1__NumericFormat x, y;
	Npumem__V1__NumericPair pair;
	Npumem__V1__NumericSum sum;
	Npumem__V1__NumericTerms terms;
	Npumem__V1__NumericAdvise advise;
	Npumem__V1__NumericOperand operands[NPUMEM_OPERANDS_MAX], *operand_list[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Dims shapes[NPUMEM_OPERANDS_MAX];
	Npumem__V1__Param params[NPUMEM_PARAMS_MAX], *param_list[NPUMEM_PARAMS_MAX];
};

/* Sets a member of a message where it is given. */
#define ASK_FRAC_BITS(message, MESSAGE, member, MEMBER, from)                                                     \
	do {                                                                                                      \
		if ((from)->member != NPUMEM_ANY) {                                                               \
			(message)->member##_given_case =                                                          \
				NPUMEM__V1__NUMERIC_##MESSAGE##__##MEMBER##_GIVEN_##MEMBER;                       \
			(message)->member = (from)->member;                                                       \
		}                                                                                                 \
	} while (0)

static void ask_format(const struct npumem_format *format, Npumem__V1__NumericFormat *message)
{
	npumem__v1__numeric_format__init(message);
	message->integer_bits = format->integer_bits;
	message->frac_bits = format->frac_bits;
}

static Npumem__V1__NumericPair *ask_pair(const struct npumem_numeric *question, struct asked *asked)
{
	ask_format(&question->x, &asked->x);
	ask_format(&question->y, &asked->y);
	npumem__v1__numeric_pair__init(&asked->pair);
	asked->pair.x = &asked->x;
	asked->pair.y = &asked->y;
	return &asked->pair;
}

static Npumem__V1__NumericSum *ask_sum(const struct npumem_numeric *question, struct asked *asked)
{
	ask_format(&question->x, &asked->x);
	npumem__v1__numeric_sum__init(&asked->sum);
	asked->sum.x = &asked->x;
	asked->sum.n = question->n;
	return &asked->sum;
}

static Npumem__V1__NumericTerms *ask_terms(const struct npumem_terms *terms, Npumem__V1__NumericTerms *message)
{
	npumem__v1__numeric_terms__init(message);
	message->data_dtype = (Npumem__V1__Dtype)terms->data_dtype;
	message->weights_dtype = (Npumem__V1__Dtype)terms->weights_dtype;
	message->has_bias = terms->has_bias;
	message->n = terms->n;
	message->weights_sum = terms->weights_sum;
	ASK_FRAC_BITS(message, TERMS, data_frac_bits, DATA_FRAC_BITS, terms);
	ASK_FRAC_BITS(message, TERMS, weights_frac_bits, WEIGHTS_FRAC_BITS, terms);
	ASK_FRAC_BITS(message, TERMS, bias_frac_bits, BIAS_FRAC_BITS, terms);
	return message;
}

static int check_advise(const struct npumem_advise *advise, struct npumem_error *error)
{
	if (advise->n_operands > NPUMEM_OPERANDS_MAX || advise->n_params > NPUMEM_PARAMS_MAX)
		return npumem_error_set(
			error, NPUMEM_INVALID, "%u operands and %u parameters, and at most %d and %d are possible",
			advise->n_operands, advise->n_params, NPUMEM_OPERANDS_MAX, NPUMEM_PARAMS_MAX);
	for (unsigned i = 0; i < advise->n_params; i++)
		if (advise->params[i].n_values > NPUMEM_PARAM_VALUES_MAX)
			return npumem_error_set(error, NPUMEM_INVALID,
						"parameter %u has %u values; %d are the most", i,
						advise->params[i].n_values, NPUMEM_PARAM_VALUES_MAX);
	return 0;
}

static int ask_advise(const struct npumem_advise *advise, struct asked *asked, struct npumem_error *error)
{
	Npumem__V1__NumericAdvise *message = &asked->advise;
	int status = check_advise(advise, error);
	if (status)
		return status;
	npumem__v1__numeric_advise__init(message);
	message->kernel = message_text(advise->kernel);
	message->data_dtype = (Npumem__V1__Dtype)advise->data_dtype;
	message->weights_dtype = (Npumem__V1__Dtype)advise->weights_dtype;
	message->n_operands = advise->n_operands;
	message->operands = asked->operand_list;
	message->n_params = advise->n_params;
	message->params = asked->param_list;
	for (unsigned i = 0; i < advise->n_operands; i++) {
		const struct npumem_numeric_operand *from = &advise->operands[i];
		Npumem__V1__NumericOperand *to = &asked->operands[i];
		npumem__v1__numeric_operand__init(to);
		convert_dims_to(&from->shape, &asked->shapes[i]);
		to->role = message_text(from->role);
		to->shape = &asked->shapes[i];
		to->weights_sum = from->weights_sum;
		ASK_FRAC_BITS(to, OPERAND, frac_bits, FRAC_BITS, from);
		asked->operand_list[i] = to;
	}
	for (unsigned i = 0; i < advise->n_params; i++) {
		npumem__v1__param__init(&asked->params[i]);
		asked->params[i].key = (Npumem__V1__ParamKey)advise->params[i].number;
		asked->params[i].n_values = advise->params[i].n_values;
		asked->params[i].values = (int64_t *)(uintptr_t)advise->params[i].values;
		asked->param_list[i] = &asked->params[i];
	}
	return 0;
}

static int ask(const struct npumem_numeric *question, struct asked *asked, Npumem__V1__NumericRequest *message,
	       struct npumem_error *error)
{
	npumem__v1__numeric_request__init(message);
	switch (question->kind) {
	case NPUMEM_NUMERIC_ADD:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADD;
		message->add = ask_pair(question, asked);
		return 0;
	case NPUMEM_NUMERIC_MUL:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_MUL;
		message->mul = ask_pair(question, asked);
		return 0;
	case NPUMEM_NUMERIC_DIV:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV;
		message->div = ask_pair(question, asked);
		return 0;
	case NPUMEM_NUMERIC_SUM:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM;
		message->sum = ask_sum(question, asked);
		return 0;
	case NPUMEM_NUMERIC_BOUND:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_BOUND;
		message->bound = ask_terms(&question->terms, &asked->terms);
		return 0;
	case NPUMEM_NUMERIC_ADVISE:
		message->question_case = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADVISE;
		message->advise = &asked->advise;
		return ask_advise(&question->advise, asked, error);
	}
	return npumem_error_set(error, NPUMEM_INVALID, "there is no numeric question %d", (int)question->kind);
}

/* ---- answers ---- */

#define TAKE_FRAC_BITS(message, member) ((message)->member##_given_case ? (message)->member : NPUMEM_ANY)

static int take_result(const Npumem__V1__NumericResult *message, struct npumem_format_result *result)
{
	if (!message->format || !message->every)
		return -1;
	*result = (struct npumem_format_result){
		.format = {message->format->integer_bits, message->format->frac_bits},
		.every = {message->every->integer_bits, message->every->frac_bits},
		.significant_bits = message->significant_bits,
		.extra_bits = message->extra_bits,
		.shift_x = message->shift_x,
		.shift_y = message->shift_y,
		.precision_lost = message->precision_lost,
	};
	return 0;
}

static void take_bound(const Npumem__V1__NumericBound *message, struct npumem_bound *bound)
{
	*bound = (struct npumem_bound){
		.accumulator_bits = (int)message->accumulator_bits,
		.low = message->low,
		.high = message->high,
		.safe = message->safe,
		.safe_weights_sum = message->safe_weights_sum,
		.least = message->least,
		.most = message->most,
		.can_overflow = message->can_overflow,
	};
	reply_text(message->breaks, bound->breaks, sizeof(bound->breaks));
}

static int take_sum(const Npumem__V1__NumericAccumulator *message, struct npumem_sum *sum)
{
	const Npumem__V1__NumericTerms *terms = message->terms;
	if (!terms || !message->bound)
		return -1;
	*sum = (struct npumem_sum){
		.terms = {.data_dtype = (int)terms->data_dtype,
			  .weights_dtype = (int)terms->weights_dtype,
			  .data_frac_bits = TAKE_FRAC_BITS(terms, data_frac_bits),
			  .weights_frac_bits = TAKE_FRAC_BITS(terms, weights_frac_bits),
			  .has_bias = terms->has_bias,
			  .bias_frac_bits = TAKE_FRAC_BITS(terms, bias_frac_bits),
			  .n = terms->n,
			  .weights_sum = terms->weights_sum},
		.additions = message->additions,
		.extra_bits = message->extra_bits,
		.available_bits = message->available_bits,
		.over_bits = message->over_bits,
		.possible = message->possible,
		.give_up_data = message->give_up_data,
		.give_up_weights = message->give_up_weights,
		.data_frac_bits = TAKE_FRAC_BITS(message, data_frac_bits),
		.weights_frac_bits = TAKE_FRAC_BITS(message, weights_frac_bits),
		.bias_frac_bits = TAKE_FRAC_BITS(message, bias_frac_bits),
	};
	take_bound(message->bound, &sum->bound);
	reply_text(message->data, sum->data, sizeof(sum->data));
	reply_text(message->weights, sum->weights, sizeof(sum->weights));
	reply_text(message->bias, sum->bias, sizeof(sum->bias));
	reply_text(message->advice, sum->advice, sizeof(sum->advice));
	return 0;
}

static int take_advice(const Npumem__V1__NumericAdvice *message, struct npumem_advice *advice)
{
	if (message->n_sums > NPUMEM_SUMS_MAX)
		return -1;
	*advice = (struct npumem_advice){
		.can_overflow = message->can_overflow,
		.has_out = message->out_frac_bits_given_case,
		.saturates = message->saturates,
		.out_frac_bits = TAKE_FRAC_BITS(message, out_frac_bits),
		.safe_out_frac_bits = TAKE_FRAC_BITS(message, safe_out_frac_bits),
	};
	for (; advice->n_sums < message->n_sums; advice->n_sums++)
		if (take_sum(message->sums[advice->n_sums], &advice->sums[advice->n_sums]))
			return -1;
	return 0;
}

/* The answer must be to the question's kind. */
static int take_answer(struct npumem_request *request, const Npumem__V1__Response *response,
		       struct npumem_error *error)
{
	const Npumem__V1__Numeric *message = response->numeric;
	struct npumem_numeric_answer *answer = result_take(request->results, sizeof(*answer));
	if (!answer)
		return request_no_memory(error);
	request->answer = answer;
	answer->kind = (enum npumem_numeric_kind)request->n;
	if (answer->kind == NPUMEM_NUMERIC_ADVISE)
		return message->answer_case == NPUMEM__V1__NUMERIC__ANSWER_ADVICE
			       ? take_advice(message->advice, &answer->advice)
			       : -1;
	if (answer->kind != NPUMEM_NUMERIC_BOUND)
		return message->answer_case == NPUMEM__V1__NUMERIC__ANSWER_RESULT
			       ? take_result(message->result, &answer->result)
			       : -1;
	if (message->answer_case != NPUMEM__V1__NUMERIC__ANSWER_BOUND)
		return -1;
	take_bound(message->bound, &answer->bound);
	return 0;
}

int npumem_numeric_remote_async(struct npumem *npumem, const struct npumem_numeric *question, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_NUMERIC, .take = take_answer};
	Npumem__V1__Request message = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__NumericRequest numeric;
	struct npumem_request *made;
	struct asked asked;
	request_clear(error);
	int status = ask(question, &asked, &numeric, error);
	if (!status)
		status = request_new(npumem, &kind, result_room(sizeof(struct npumem_numeric_answer)), callback,
				     context, &made, error);
	if (status)
		return status;
	made->n = question->kind;
	message.call_case = NPUMEM__V1__REQUEST__CALL_NUMERIC;
	message.numeric = &numeric;
	return request_start(made, &message, NULL, request, error);
}
