/* Operations that carry no data: fill, copy, and what else is answered with a Done. */
#include "client/lib/calls/operations.h"

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"

static int take_done(struct npumem_request *request, const Npumem__V1__Response *response,
		     struct npumem_error *error)
{
	request->answer = reply_done(response->done, request->results);
	return request->answer ? 0 : request_no_memory(error);
}

int operations_start(struct npumem *npumem, Npumem__V1__Request *message, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_DONE, .take = take_done};
	return request_call(npumem, &kind, message, NULL, callback, context, request, error);
}

static int fill(struct npumem *npumem, Npumem__V1__FillRequest *message, uint64_t handle, NPUMEM_ASYNC)
{
	Npumem__V1__Ref ref;
	message->tensor = message_ref(handle, &ref);
	return operations_start(npumem, &MESSAGE_REQUEST(FILL, fill, message), callback, context, request, error);
}

int npumem_fill_async(struct npumem *npumem, uint64_t handle, int64_t value, NPUMEM_ASYNC)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	message.integer = value;
	return fill(npumem, &message, handle, callback, context, request, error);
}

int npumem_fill_float_async(struct npumem *npumem, uint64_t handle, double value, NPUMEM_ASYNC)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
	message.real = value;
	return fill(npumem, &message, handle, callback, context, request, error);
}

int npumem_copy_async(struct npumem *npumem, uint64_t destination, uint64_t source, NPUMEM_ASYNC)
{
	Npumem__V1__CopyRequest copy = NPUMEM__V1__COPY_REQUEST__INIT;
	Npumem__V1__Ref refs[2];
	copy.destination = message_ref(destination, &refs[0]);
	copy.source = message_ref(source, &refs[1]);
	return operations_start(npumem, &MESSAGE_REQUEST(COPY, copy, &copy), callback, context, request, error);
}
