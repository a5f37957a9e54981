/* A session that goes on after the daemon was started again. */
#include "daemon/rpc/handlers/handler.h"

int handle_resume(struct call *call, const Npumem__V1__ResumeRequest *request)
{
	Npumem__V1__Resumed message = NPUMEM__V1__RESUMED__INIT;

	if (request->token.len)
		return npumem_error_set(call->error, NPUMEM_NOT_FOUND, "no session waits for this token");
	message.session = call->session->id;
	return reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RESUMED, &message.base, call->error);
}
