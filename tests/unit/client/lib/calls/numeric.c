/* Numeric questions over the wire: what is sent, and answers that fit the question or do not. */

#include "tests/unit/client/lib/one_peer.h"

static void answer(uint64_t id, int answer_case, void *message)
{
	Npumem__V1__Numeric numeric = {
		MESSAGE(numeric), .answer_case = (Npumem__V1__Numeric__AnswerCase)answer_case, .result = message};
	PEER_ANSWER(&peer, id, numeric, NUMERIC, &numeric);
}

TEST(formats)
{
	struct npumem_numeric question = {.x = {4, 3}, .y = {5, -7}, .n = 34};
	Npumem__V1__NumericFormat format = {PROTOBUF_C_MESSAGE_INIT(&npumem__v1__numeric_format__descriptor), 9,
					    10};
	Npumem__V1__NumericFormat every = {PROTOBUF_C_MESSAGE_INIT(&npumem__v1__numeric_format__descriptor), 10,
					   10};
	for (int kind = NPUMEM_NUMERIC_ADD; kind <= NPUMEM_NUMERIC_SUM; kind++) {
		const struct npumem_numeric_answer *got;
		Npumem__V1__NumericResult result = {MESSAGE(numeric_result), .format = &format, .every = &every,
						    .shift_y = 10, .extra_bits = 1};
		question.kind = (enum npumem_numeric_kind)kind;
		answer((uint64_t)kind, NPUMEM__V1__NUMERIC__ANSWER_RESULT, &result);
		ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, NULL), 0);
		ck_assert_int_eq(got->kind, kind);
		ck_assert_int_eq(got->result.format.integer_bits, 9);
		ck_assert_int_eq(got->result.every.integer_bits, 10);
		ck_assert_int_eq(got->result.shift_y, 10);
		Npumem__V1__Request *request = peer_request(&peer);
		ck_assert_int_eq(request->numeric->question_case, kind);
		if (kind == NPUMEM_NUMERIC_SUM) {
			ck_assert_int_eq(request->numeric->sum->n, 34);
			ck_assert_int_eq(request->numeric->sum->x->frac_bits, 3);
		} else {
			ck_assert_int_eq(request->numeric->mul->x->integer_bits, 4);
			ck_assert_int_eq(request->numeric->mul->y->frac_bits, -7);
		}
		npumem__v1__request__free_unpacked(request, NULL);
	}
}

TEST(a_bound)
{
	const struct npumem_numeric_answer *got;
	struct npumem_numeric question = {.kind = NPUMEM_NUMERIC_BOUND};
	npumem_terms_init(&question.terms);
	question.terms.data_dtype = NPUMEM_FX16;
	question.terms.weights_dtype = NPUMEM_FX8;
	question.terms.weights_frac_bits = 0;
	question.terms.has_bias = true;
	Npumem__V1__NumericBound message = {MESSAGE(numeric_bound), .safe = 511, .least = INT64_MIN,
					    .breaks = (char *)(uintptr_t) "512 \033[2J"};
	answer(1, NPUMEM__V1__NUMERIC__ANSWER_BOUND, &message);
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, NULL), 0);
	ck_assert_int_eq(got->bound.safe, 511);
	ck_assert_int_eq(got->bound.least, INT64_MIN);
	ck_assert_str_eq(got->bound.breaks, "512 ?[2J");
	Npumem__V1__Request *request = peer_request(&peer);
	const Npumem__V1__NumericTerms *terms = request->numeric->bound;
	ck_assert_int_eq((int)terms->weights_dtype, NPUMEM_FX8);
	ck_assert(terms->has_bias && !terms->data_frac_bits_given_case && !terms->bias_frac_bits_given_case);
	ck_assert(terms->weights_frac_bits_given_case && terms->weights_frac_bits == 0);
	npumem__v1__request__free_unpacked(request, NULL);
}

struct advised {
	Npumem__V1__NumericAdvice message;
	Npumem__V1__NumericAccumulator sum, *list[NPUMEM_SUMS_MAX + 1];
	Npumem__V1__NumericTerms terms;
	Npumem__V1__NumericBound bound;
};

static void advised_init(struct advised *to, unsigned n_sums)
{
	npumem__v1__numeric_advice__init(&to->message);
	npumem__v1__numeric_accumulator__init(&to->sum);
	npumem__v1__numeric_terms__init(&to->terms);
	npumem__v1__numeric_bound__init(&to->bound);
	to->sum.data = (char *)(uintptr_t) "a role of more bytes than there is room for";
	to->sum.terms = &to->terms;
	to->sum.bound = &to->bound;
	to->sum.data_frac_bits_given_case = NPUMEM__V1__NUMERIC_ACCUMULATOR__DATA_FRAC_BITS_GIVEN_DATA_FRAC_BITS;
	to->sum.data_frac_bits = 10;
	to->message.n_sums = n_sums;
	to->message.sums = to->list;
	for (unsigned i = 0; i < n_sums; i++)
		to->list[i] = &to->sum;
}

TEST(a_convolution)
{
	const struct npumem_numeric_answer *got;
	const struct npumem_numeric_operand operands[] = {{"in", {1, 64, 32, 32}, 11, 0},
							  {"weights", {64, 32, 5, 5}, NPUMEM_ANY, 77}};
	const struct npumem_param params[] = {{NPUMEM_PARAM_STRIDE, 2, {3, 4}}};
	struct npumem_numeric question = {.kind = NPUMEM_NUMERIC_ADVISE,
					  .advise = {.kernel = "conv2d",
						     .data_dtype = NPUMEM_FX16,
						     .operands = operands,
						     .n_operands = 2,
						     .params = params,
						     .n_params = 1}};
	struct advised advised;
	advised_init(&advised, NPUMEM_SUMS_MAX);
	answer(1, NPUMEM__V1__NUMERIC__ANSWER_ADVICE, &advised.message);
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, NULL), 0);
	ck_assert_uint_eq(got->advice.n_sums, NPUMEM_SUMS_MAX);
	ck_assert_int_eq(got->advice.sums[NPUMEM_SUMS_MAX - 1].data_frac_bits, 10);
	ck_assert_int_eq(got->advice.sums[NPUMEM_SUMS_MAX - 1].weights_frac_bits, NPUMEM_ANY);
	ck_assert_uint_eq(strlen(got->advice.sums[0].data), NPUMEM_FIELD_KEY_BYTES - 1);
	ck_assert(!got->advice.has_out);
	Npumem__V1__Request *request = peer_request(&peer);
	const Npumem__V1__NumericAdvise *advise = request->numeric->advise;
	ck_assert_str_eq(advise->kernel, "conv2d");
	ck_assert_uint_eq(advise->n_operands, 2);
	ck_assert_str_eq(advise->operands[1]->role, "weights");
	ck_assert_int_eq(advise->operands[0]->frac_bits, 11);
	ck_assert_int_eq(advise->operands[1]->frac_bits_given_case, 0);
	ck_assert_int_eq(advise->operands[1]->shape->h, 5);
	ck_assert_int_eq(advise->operands[1]->weights_sum, 77);
	ck_assert_int_eq(advise->params[0]->values[1], 4);
	npumem__v1__request__free_unpacked(request, NULL);
}

/* More sums than there are, parts that are missing, and an answer to another question. */
TEST(answers_that_cannot_be)
{
	for (unsigned what = 0; what < 6; what++) {
		peer_again();
		const struct npumem_numeric_answer *got;
		struct npumem_numeric question = {.kind = what == 5   ? NPUMEM_NUMERIC_BOUND
							  : what == 4 ? NPUMEM_NUMERIC_MUL
								      : NPUMEM_NUMERIC_ADVISE};
		Npumem__V1__NumericResult result = NPUMEM__V1__NUMERIC_RESULT__INIT;
		struct advised advised;
		advised_init(&advised, what == 0 ? NPUMEM_SUMS_MAX + 1 : 1);
		if (what == 1)
			advised.sum.terms = NULL;
		if (what == 2)
			advised.sum.bound = NULL;
		if (what < 3)
			answer(1, NPUMEM__V1__NUMERIC__ANSWER_ADVICE, &advised.message);
		else
			answer(1, NPUMEM__V1__NUMERIC__ANSWER_RESULT, &result);
		ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, NULL), NPUMEM_UNAVAILABLE);
	}
}

TEST(questions_that_do_not_fit)
{
	const struct npumem_numeric_answer *got;
	const struct npumem_param params[] = {{NPUMEM_PARAM_STRIDE, NPUMEM_PARAM_VALUES_MAX + 1, {3}}};
	struct npumem_numeric question = {.kind = NPUMEM_NUMERIC_ADVISE,
					  .advise = {.kernel = "conv2d", .n_operands = NPUMEM_OPERANDS_MAX + 1}};
	struct npumem_error error;
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "41 operands and 0 parameters, and at most 40 and 40 are possible");
	question.advise = (struct npumem_advise){.params = params, .n_params = 1};
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "parameter 1 has 5 values, and at most 4 are possible");
	question.kind = 0;
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "there is no numeric question 0");
	ck_assert_uint_eq(npumem_in_flight(peer.npumem), 0);
	/* A refusal of the daemon's. */
	question.kind = NPUMEM_NUMERIC_MUL;
	peer_refuse(&peer, 1, NPUMEM_INVALID, "too wide");
	ck_assert_int_eq(npumem_numeric_remote(peer.npumem, &question, &got, &error), NPUMEM_INVALID);
	ck_assert_str_eq(error.message, "too wide");
}
