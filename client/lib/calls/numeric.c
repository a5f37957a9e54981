/* Numeric planning by the daemon: the same questions and answers as numeric.h, over the wire. */
#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"
#include "proto/convert_numeric.h"

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
	return convert_answer_from(message, answer);
}

int npumem_numeric_remote_async(struct npumem *npumem, const struct npumem_numeric *question, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_NUMERIC, .take = take_answer};
	struct npumem_request *made;
	struct convert_question asked;
	request_clear(error);
	int status = convert_question_to(question, &asked, error);
	if (!status)
		status = request_new(npumem, &kind, result_room(sizeof(struct npumem_numeric_answer)), callback,
				     context, &made, error);
	if (status)
		return status;
	made->n = question->kind;
	return request_start(made, &MESSAGE_REQUEST(NUMERIC, numeric, &asked.message), NULL, request, error);
}
