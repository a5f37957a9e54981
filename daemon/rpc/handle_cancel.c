/* Cancelling another request of the same connection: this only tells whether it is there; it ends when this reply
 * is written. */
#include "daemon/rpc/job.h"

int handle_cancel(struct call *call, const Npumem__V1__CancelRequest *request)
{
	Npumem__V1__Cancelled message = NPUMEM__V1__CANCELLED__INIT;

	message.found = call->peer && job_find(call->peer, request->request_id);
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_CANCELLED, &message.base, call->error);
}
