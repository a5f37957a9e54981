#include <npumem/numeric.h>

#include "tests/unit/daemon/rpc/talk.h"

FIXTURE_OBJECT(struct talk, talk, talk_init(&talk), talk_deinit(&talk))

static int ask(Npumem__V1__NumericRequest *request, int question)
{
	request->question_case = (Npumem__V1__NumericRequest__QuestionCase)question;
	return TALK(&talk, numeric, NUMERIC, request);
}

static Npumem__V1__NumericFormat format(int64_t integer_bits, int64_t frac_bits)
{
	Npumem__V1__NumericFormat to = {MESSAGE(numeric_format), .integer_bits = integer_bits,
					.frac_bits = frac_bits};
	return to;
}

TEST(formats_of_results)
{
	static const struct {
		int question;
		int64_t m1, n1, m2, n2, m, n;
	} cases[] = {
		{NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADD, 3, 4, 5, 1, 6, 4},
		{NPUMEM__V1__NUMERIC_REQUEST__QUESTION_MUL, 4, 3, 5, 7, 9, 10},
		{NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV, 16, 16, 7, 10, 9, 6},
		{NPUMEM__V1__NUMERIC_REQUEST__QUESTION_DIV, 7, 8, 3, 12, 4, -4},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		Npumem__V1__NumericRequest request = NPUMEM__V1__NUMERIC_REQUEST__INIT;
		Npumem__V1__NumericFormat x = format(cases[i].m1, cases[i].n1),
					  y = format(cases[i].m2, cases[i].n2);
		const Npumem__V1__NumericResult *result;
		Npumem__V1__NumericPair pair = {MESSAGE(numeric_pair), .x = &x, .y = &y};
		request.mul = &pair;
		ck_assert_int_eq(ask(&request, cases[i].question), 0);
		result = talk.response->numeric->result;
		ck_assert_int_eq(result->format->integer_bits, cases[i].m);
		ck_assert_int_eq(result->format->frac_bits, cases[i].n);
		ck_assert_int_eq(result->significant_bits, cases[i].m + cases[i].n);
		ck_assert_int_eq(result->precision_lost, cases[i].m + cases[i].n <= 0);
		ck_assert_int_ge(result->every->integer_bits, cases[i].m);
		ck_assert_int_eq(result->shift_y, i == 0 ? 3 : 0);
		x.integer_bits = -60;
		talk_fails(&talk, ask(&request, cases[i].question), NPUMEM_INVALID,
			   "bits beside the sign, fewer than 0");
		pair.y = NULL;
		talk_fails(&talk, ask(&request, cases[i].question), NPUMEM_INVALID,
			   "the format of y is not given");
	}
}

TEST(a_sum)
{
	Npumem__V1__NumericRequest request = NPUMEM__V1__NUMERIC_REQUEST__INIT;
	Npumem__V1__NumericFormat x = format(3, 4);
	Npumem__V1__NumericSum sum = {MESSAGE(numeric_sum), .x = &x, .n = 34};
	request.sum = &sum;
	ck_assert_int_eq(ask(&request, NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM), 0);
	ck_assert_int_eq(talk.response->numeric->result->extra_bits, 6);
	ck_assert_int_eq(talk.response->numeric->result->format->integer_bits, 9);
	ck_assert_int_eq(talk.response->numeric->result->every->frac_bits, 4);
	sum.n = -34;
	talk_fails(&talk, ask(&request, NPUMEM__V1__NUMERIC_REQUEST__QUESTION_SUM), NPUMEM_INVALID,
		   "a sum of -34 values");
}

TEST(a_bound)
{
	Npumem__V1__NumericRequest request = NPUMEM__V1__NUMERIC_REQUEST__INIT;
	Npumem__V1__NumericTerms terms = NPUMEM__V1__NUMERIC_TERMS__INIT;
	const int question = NPUMEM__V1__NUMERIC_REQUEST__QUESTION_BOUND;
	request.bound = &terms;
	terms.data_dtype = terms.weights_dtype = NPUMEM__V1__DTYPE__FX16;
	terms.n = 512;
	ck_assert_int_eq(ask(&request, question), 0);
	const Npumem__V1__NumericBound *bound = talk.response->numeric->bound;
	ck_assert_int_eq(bound->accumulator_bits, 40);
	ck_assert_int_eq(bound->safe, 511);
	ck_assert_int_eq(bound->safe_weights_sum, (1 << 24) - 1);
	ck_assert_int_eq(bound->most, bound->high + 1);
	ck_assert_int_eq(bound->least, INT64_C(-512) * 32768 * 32767);
	ck_assert_int_eq(bound->low, -bound->high - 1);
	ck_assert(bound->can_overflow);
	ck_assert_str_eq(bound->breaks,
			 "512 products of -32768 * -32768 reach 2^39 = 549755813888, past 549755813887");
	terms.has_bias = true;
	ck_assert_int_eq(ask(&request, question), 0);
	ck_assert_int_eq(talk.response->numeric->bound->safe, 510);
	terms.bias_frac_bits_given_case = NPUMEM__V1__NUMERIC_TERMS__BIAS_FRAC_BITS_GIVEN_BIAS_FRAC_BITS;
	terms.bias_frac_bits = 20;
	talk_fails(&talk, ask(&request, question), NPUMEM_INVALID,
		   "the bias has 20 frac_bits, but those of data and weights are not given");
	terms.data_frac_bits_given_case = NPUMEM__V1__NUMERIC_TERMS__DATA_FRAC_BITS_GIVEN_DATA_FRAC_BITS;
	terms.weights_frac_bits_given_case = NPUMEM__V1__NUMERIC_TERMS__WEIGHTS_FRAC_BITS_GIVEN_WEIGHTS_FRAC_BITS;
	terms.data_frac_bits = 11;
	terms.weights_frac_bits = 8;
	talk_fails(&talk, ask(&request, question), NPUMEM_INVALID,
		   "the bias has 20 frac_bits, more than the 19 of data (11) and weights (8)");
	ck_assert_int_eq(talk_field(&talk, "value"), 20);
	ck_assert_int_eq(talk_field(&talk, "expected"), 19);
	terms.bias_frac_bits = 19;
	ck_assert_int_eq(ask(&request, question), 0);
	ck_assert_int_eq(talk.response->numeric->bound->safe, 511);
	terms.bias_frac_bits = -1;
	talk_fails(&talk, ask(&request, question), NPUMEM_INVALID, "bias: -1 frac_bits is below 0");
	terms.data_dtype = (Npumem__V1__Dtype)77;
	talk_fails(&talk, ask(&request, question), NPUMEM_INVALID, "data type 77");
}

/* The seed's convolution. */
struct convolution {
	Npumem__V1__NumericRequest request;
	Npumem__V1__NumericAdvise advise;
	Npumem__V1__NumericOperand operands[4], *operand_list[4];
	Npumem__V1__Dims shapes[2];
	Npumem__V1__Param param, *param_list[NPUMEM_PARAMS_MAX + 1];
	int64_t stride[NPUMEM_PARAM_VALUES_MAX + 1];
};

static void convolution_init(struct convolution *to)
{
	static const struct {
		const char *role;
		int64_t frac_bits;
	} operands[] = {{"in", 11}, {"weights", 15}, {"bias", 26}, {"out", 2}};
	npumem__v1__numeric_request__init(&to->request);
	npumem__v1__numeric_advise__init(&to->advise);
	npumem__v1__param__init(&to->param);
	for (unsigned i = 0; i < 4; i++) {
		npumem__v1__numeric_operand__init(&to->operands[i]);
		to->operands[i].role = (char *)operands[i].role;
		to->operands[i].frac_bits_given_case = NPUMEM__V1__NUMERIC_OPERAND__FRAC_BITS_GIVEN_FRAC_BITS;
		to->operands[i].frac_bits = operands[i].frac_bits;
		to->operand_list[i] = &to->operands[i];
	}
	npumem__v1__dims__init(&to->shapes[0]);
	npumem__v1__dims__init(&to->shapes[1]);
	to->shapes[0].n = 1;
	to->shapes[0].c = to->shapes[1].n = 64;
	to->shapes[0].h = to->shapes[0].w = to->shapes[1].c = 32;
	to->shapes[1].h = to->shapes[1].w = 5;
	to->operands[0].shape = &to->shapes[0];
	to->operands[1].shape = &to->shapes[1];
	to->param.key = NPUMEM__V1__PARAM_KEY__PARAM_STRIDE;
	to->param.n_values = 2;
	to->param.values = to->stride;
	to->stride[0] = to->stride[1] = 1;
	for (unsigned i = 0; i <= NPUMEM_PARAMS_MAX; i++)
		to->param_list[i] = &to->param;
	to->advise.kernel = (char *)"conv2d";
	to->advise.data_dtype = NPUMEM__V1__DTYPE__FX16;
	to->advise.n_operands = 4;
	to->advise.operands = to->operand_list;
	to->advise.n_params = 1;
	to->advise.params = to->param_list;
	to->request.advise = &to->advise;
}

static int ask_convolution(struct convolution *convolution)
{
	return ask(&convolution->request, NPUMEM__V1__NUMERIC_REQUEST__QUESTION_ADVISE);
}

TEST(a_convolution)
{
	struct convolution convolution;
	convolution_init(&convolution);
	ck_assert_int_eq(ask_convolution(&convolution), 0);
	const Npumem__V1__NumericAdvice *advice = talk.response->numeric->advice;
	ck_assert_uint_eq(advice->n_sums, 1);
	ck_assert(advice->can_overflow && advice->saturates);
	ck_assert_int_eq(advice->out_frac_bits, 2);
	ck_assert_int_eq(advice->safe_out_frac_bits, 1); /* 2^39 in Q.26 is 2^13 */
	const Npumem__V1__NumericAccumulator *sum = advice->sums[0];
	ck_assert_str_eq(sum->data, "in");
	ck_assert_str_eq(sum->weights, "weights");
	ck_assert_str_eq(sum->bias, "bias");
	ck_assert_int_eq(sum->terms->n, 1600);
	ck_assert_int_eq((int)sum->terms->weights_dtype, NPUMEM_FX16);
	ck_assert_int_eq(sum->terms->bias_frac_bits, 26);
	ck_assert(sum->terms->has_bias);
	ck_assert_int_eq(sum->additions, 1601);
	ck_assert_int_eq(sum->extra_bits, 11);
	ck_assert_int_eq(sum->available_bits, 9);
	ck_assert_int_eq(sum->over_bits, 2);
	ck_assert(sum->possible);
	ck_assert_int_eq(sum->give_up_data, 1);
	ck_assert_int_eq(sum->give_up_weights, 1);
	ck_assert_int_eq(sum->data_frac_bits, 10);
	ck_assert_int_eq(sum->weights_frac_bits, 14);
	ck_assert_int_eq(sum->bias_frac_bits, 24);
	ck_assert_int_eq(sum->bound->safe, 511);
	ck_assert_str_eq(
		sum->advice,
		"give up 2 bits: in from Q.11 to Q.10, weights from Q.15 to Q.14; bias then from Q.26 to Q.24");
	/* What is not given is not there in the answer. */
	for (unsigned i = 0; i < 4; i++)
		convolution.operands[i].frac_bits_given_case = 0;
	ck_assert_int_eq(ask_convolution(&convolution), 0);
	ck_assert_int_eq(talk.response->numeric->advice->sums[0]->data_frac_bits_given_case, 0);
	ck_assert_int_eq(talk.response->numeric->advice->sums[0]->terms->weights_frac_bits_given_case, 0);
	ck_assert_int_eq(talk.response->numeric->advice->out_frac_bits_given_case, 0);
}

TEST(advice_refused)
{
	struct convolution convolution;
	convolution_init(&convolution);
	convolution.operands[2].frac_bits = 27;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID,
		   "the bias has 27 frac_bits, more than the 26 of data (11) and weights (15)");
	convolution.operands[2].frac_bits = -5;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID, "bias: -5 frac_bits is below 0");
	convolution_init(&convolution);
	convolution.shapes[1].n = 63;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID,
		   "conv2d: n of weights is 63, but c of in is 64");
	convolution.advise.kernel = (char *)"conv3d";
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID,
		   "\"conv3d\" is not a kernel that adds up");
	convolution_init(&convolution);
	convolution.param.n_values = NPUMEM_PARAM_VALUES_MAX + 1;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID,
		   "parameter 1 has 5 values, and at most 4 are possible");
	convolution_init(&convolution);
	convolution.advise.n_params = NPUMEM_PARAMS_MAX + 1;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID,
		   "4 operands and 41 parameters, and at most 40 and 40 are possible");
	convolution_init(&convolution);
	convolution.param.key = (Npumem__V1__ParamKey)-3;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID, "there is no parameter -3");
	convolution.advise.weights_dtype = (Npumem__V1__Dtype)99;
	talk_fails(&talk, ask_convolution(&convolution), NPUMEM_INVALID, "weights type 99");
}

TEST(no_question)
{
	Npumem__V1__NumericRequest request = NPUMEM__V1__NUMERIC_REQUEST__INIT;
	talk_fails(&talk, ask(&request, 0), NPUMEM_INVALID,
		   "a numeric question of a kind that this daemon does not know");
}
