/* Numeric planning. The formulas check and answer; no device or tensor is touched, so that whoever is connected may
 * ask. */
#include "daemon/rpc/handlers/handler.h"
#include "proto/convert_numeric.h"

int handle_numeric(struct call *call, const Npumem__V1__NumericRequest *request)
{
	struct npumem_numeric question;
	struct npumem_numeric_answer answer;
	struct convert_advise parts;
	struct convert_answer to;
	int status = convert_question_from(request, &parts, &question, call->error);

	if (!status)
		status = npumem_numeric(&question, &answer, call->error);
	if (status)
		return status;
	convert_answer_to(&answer, &to);
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_NUMERIC, &to.message.base, call->error);
}
