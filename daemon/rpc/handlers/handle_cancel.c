/* Cancelling another request of the same connection: what waits ends, what runs is told. */
#include <inttypes.h>

#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/known.h"

static void cancel(struct call *call)
{
	if (call_is_started(call)) {
		perform_cancel(call);
		return;
	}
	/* Part of it is there already, so it goes on. */
	if (call->is_committed || known_is_kept(call))
		return;
	npumem_error_clear(call->error);
	call_end(call,
		 npumem_error_set(call->error, NPUMEM_CANCELLED, "request %" PRIu64 " was cancelled", call->id));
}

int handle_cancel(struct call *call, const Npumem__V1__CancelRequest *request)
{
	Npumem__V1__Cancelled message = NPUMEM__V1__CANCELLED__INIT;
	struct call *other = call_find(call->peer, request->request_id);
	int status;

	other = other == call ? NULL : other;
	message.found = other != NULL;
	status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_CANCELLED, &message.base, call->error);
	if (!status && other)
		cancel(other);
	return status;
}
