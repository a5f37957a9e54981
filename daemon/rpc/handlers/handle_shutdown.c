/* The end of the daemon, asked for by a request. Says whether it may be; the server ends when this was answered.
 */
#include <inttypes.h>

#include "daemon/rpc/handlers/handler.h"

int handle_shutdown(struct call *call, const Npumem__V1__ShutdownRequest *request)
{
	Npumem__V1__ShuttingDown message = NPUMEM__V1__SHUTTING_DOWN__INIT;
	struct rpc *rpc = call->rpc;
	int status;

	(void)request;
	if (!session_is_admin(call->session))
		return npumem_error_set(call->error, NPUMEM_PERMISSION_DENIED,
					"only root and uid %" PRIu32 ", as whom the daemon runs, may shut it down",
					rpc->service->uid);
	status =
		reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SHUTTING_DOWN, &message.base, call->error);
	if (!status && rpc->shut_down)
		rpc->shut_down(rpc->ctx, call->session);
	return status;
}
