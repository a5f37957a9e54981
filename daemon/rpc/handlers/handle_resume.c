/* A session that goes on after the daemon was started again: its token, and its return. */
#include "daemon/rpc/resume/absent.h"
#include "daemon/rpc/handlers/handler.h"

static int resume(struct call *call, const Npumem__V1__ResumeRequest *request)
{
	if (!session_is_fresh(call->session) || call->peer->n_calls != 1)
		return npumem_error_set(call->error, NPUMEM_INVALID,
					"this connection has a session of its own: a token is to come first");
	return absent_return(call->rpc, call->session, request->token.data, request->token.len, call->error);
}

int handle_resume(struct call *call, const Npumem__V1__ResumeRequest *request)
{
	Npumem__V1__Resumed message = NPUMEM__V1__RESUMED__INIT;
	const struct persist *persist = &call->rpc->service->persist;
	struct session *session = call->session;
	int status = reply_reserve(&call->reply, PERSIST_TOKEN_BYTES + 6 * REPLY_TAG_BYTES, call->error);

	if (!status && request->token.len)
		status = resume(call, request);
	else if (!status && persist_is_on(persist))
		status = persist_session_begin(session, request->linger, call->error);
	if (status)
		return status;
	if (session->has_token) {
		message.token = (ProtobufCBinaryData){PERSIST_TOKEN_BYTES, session->token};
		message.resume_seconds = persist->resume_seconds;
	}
	message.session = session->id;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_RESUMED, &message.base);
	return 0;
}
