/* Taking back what was sent. */
#include "client/lib/call.h"

uint64_t npumem_last_request(const struct npumem *npumem)
{
	return npumem->last_id;
}

static int take_cancelled(struct call *call, const Npumem__V1__Response *response)
{
	*(bool *)call->result = response->cancelled->found;
	return 0;
}

static void told_nobody(void *context, const struct npumem_answer *answer)
{
	(void)context;
	(void)answer;
}

int npumem_cancel(struct npumem *npumem, uint64_t request_id, bool *found, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CancelRequest message = NPUMEM__V1__CANCEL_REQUEST__INIT;
	bool ignored;
	struct call call = {.take = take_cancelled, .result = found ? found : &ignored};
	message.request_id = request_id;
	request.call_case = NPUMEM__V1__REQUEST__CALL_CANCEL;
	request.cancel = &message;
	if (!npumem->dispatching)
		return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_CANCELLED, &call, error);
	call_clear(error);
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_CANCELLED, 0, told_nobody, NULL,
			     error);
}
