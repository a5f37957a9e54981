/* What travels comes out as it went in: told by packing it once more. */
#include "proto/convert_numeric.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum { BYTES = 16384 };

static size_t pack(const ProtobufCMessage *message, uint8_t *bytes)
{
	ck_assert_uint_le(protobuf_c_message_get_packed_size(message), BYTES);
	return protobuf_c_message_pack(message, bytes);
}

static size_t pack_question(const struct npumem_numeric *question, uint8_t *bytes)
{
	static struct convert_question to;
	memset(&to, 0x55, sizeof(to));
	ck_assert_int_eq(convert_question_to(question, &to, NULL), 0);
	return pack(&to.message.base, bytes);
}

static size_t pack_answer(const struct npumem_numeric_answer *answer, uint8_t *bytes)
{
	static struct convert_answer to;
	memset(&to, 0x55, sizeof(to));
	convert_answer_to(answer, &to);
	return pack(&to.message.base, bytes);
}

/* The question as the other side sees it, and its answer there and back. */
static void travels(const struct npumem_numeric *question)
{
	static uint8_t there[BYTES], again[BYTES];
	static struct npumem_numeric_answer answer, back;
	static struct convert_advise parts;
	size_t n = pack_question(question, there);
	Npumem__V1__NumericRequest *request = npumem__v1__numeric_request__unpack(NULL, n, there);
	struct npumem_numeric received;
	ck_assert_ptr_nonnull(request);
	ck_assert_int_eq(convert_question_from(request, &parts, &received, NULL), 0);
	ck_assert_int_eq(received.kind, question->kind);
	ck_assert_uint_eq(pack_question(&received, again), n);
	ck_assert_mem_eq(again, there, n);
	ck_assert_int_eq(npumem_numeric(&received, &answer, NULL), 0);
	npumem__v1__numeric_request__free_unpacked(request, NULL);
	n = pack_answer(&answer, there);
	Npumem__V1__Numeric *reply = npumem__v1__numeric__unpack(NULL, n, there);
	ck_assert_ptr_nonnull(reply);
	for (int kind = NPUMEM_NUMERIC_ADD; kind <= NPUMEM_NUMERIC_ADVISE; kind++) {
		bool is_result = kind < NPUMEM_NUMERIC_BOUND && question->kind < NPUMEM_NUMERIC_BOUND;
		back.kind = (enum npumem_numeric_kind)kind;
		ck_assert_int_eq(convert_answer_from(reply, &back),
				 kind == (int)question->kind || is_result ? 0 : -1);
	}
	back.kind = question->kind;
	ck_assert_int_eq(convert_answer_from(reply, &back), 0);
	ck_assert_uint_eq(pack_answer(&back, again), n);
	ck_assert_mem_eq(again, there, n);
	npumem__v1__numeric__free_unpacked(reply, NULL);
}

TEST(questions_and_answers_travel)
{
	const struct npumem_param params[] = {{NPUMEM_PARAM_STRIDE, 2, {1, 2}}};
	const struct npumem_numeric_operand operands[] = {{"in", {1, 64, 32, 32}, 11, 0},
							  {"weights", {64, 32, 5, 5}, 15, 70000},
							  {"bias", {1, 32, 1, 1}, NPUMEM_ANY, 0}};
	struct npumem_numeric question = {.x = {3, 4}, .y = {-1, 12}, .n = 34};
	for (int kind = NPUMEM_NUMERIC_ADD; kind <= NPUMEM_NUMERIC_SUM; kind++) {
		question.kind = (enum npumem_numeric_kind)kind;
		travels(&question);
	}
	question.kind = NPUMEM_NUMERIC_BOUND;
	npumem_terms_init(&question.terms);
	question.terms.data_dtype = question.terms.weights_dtype = NPUMEM_FX16;
	question.terms.n = 1601;
	travels(&question);
	question.terms.has_bias = true;
	question.terms.data_frac_bits = 11;
	question.terms.weights_frac_bits = 15;
	question.terms.bias_frac_bits = 0;
	travels(&question);
	question.kind = NPUMEM_NUMERIC_ADVISE;
	question.advise = (struct npumem_advise){.kernel = "conv2d",
						 .data_dtype = NPUMEM_FX16,
						 .operands = operands,
						 .n_operands = 3,
						 .params = params,
						 .n_params = 1};
	travels(&question);
}
