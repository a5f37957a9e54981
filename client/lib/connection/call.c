/* Waiting. Invariant: a `struct call` on a stack is known to a request only while call_wait runs, or its caller is
 * about to call it. A callback may close the connection meanwhile: all requests are answered then. */
#include "client/lib/connection/connection.h"

#include "client/lib/connection/engine/engine.h"

int call_begin(struct npumem *npumem, struct call *call, struct npumem_error *error)
{
	request_clear(error);
	*call = (struct call){.npumem = npumem, .error = error};
	if (npumem->dispatching)
		return npumem_error_set(error, NPUMEM_INVALID, "a callback may send, but not wait for an answer");
	if (npumem->interrupted)
		return npumem_error_set(error, NPUMEM_CANCELLED, "interrupted");
	return 0;
}

void npumem_interrupt(struct npumem *npumem, bool on)
{
	npumem->interrupted = on;
}

void call_interrupt(struct npumem *npumem)
{
	for (struct npumem_request *request = npumem->first_request; request; request = request->next)
		npumem_cancel(request);
}

void call_answered(void *context, const struct npumem_answer *answer)
{
	struct call *call = context;
	call->answered = true;
	call->status = answer->status;
	call->result = answer->result;
	if (answer->result && !call->npumem->closing)
		result_keep(answer->result);
	else
		call->result = NULL;
	if (answer->status && call->error)
		*call->error = *answer->error;
}

int call_wait(struct call *call, int status)
{
	bool is_gone = false;
	if (status)
		return status;
	/* A connection that breaks or closes answers every request, so this ends. */
	while (!call->answered) {
		is_gone = engine_wait(call->npumem, NULL) == NPUMEM_CANCELLED;
		if (!is_gone && call->npumem->interrupted)
			call_interrupt(call->npumem);
	}
	if (!is_gone)
		return call->status;
	call->result = NULL;
	return npumem_error_set(call->error, NPUMEM_CANCELLED, "a callback has closed the connection");
}
