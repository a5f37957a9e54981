/* System memory: shared and taken back. */
#include "daemon/rpc/handlers/handler.h"
#include "daemon/service/segments.h"

int handle_segments_share(struct call *call, const Npumem__V1__ShareRequest *request)
{
	Npumem__V1__Shared message = NPUMEM__V1__SHARED__INIT;
	struct segment *segment;
	int status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = segments_share(call->session, request->segment, &segment, call->error);
	if (status)
		return status;
	call->recording.shared = segment;
	message.segment = segment->id;
	message.bytes = segment->memory.bytes;
	message.writable = segment->memory.writable;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SHARED, &message.base);
	return 0;
}

int handle_segments_unshare(struct call *call, const Npumem__V1__UnshareRequest *request)
{
	Npumem__V1__Unshared message = NPUMEM__V1__UNSHARED__INIT;
	int status = reply_reserve(&call->reply, 2 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = segments_unshare(call->session, request->segment, call->error);
	if (!status)
		reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_UNSHARED, &message.base);
	return status;
}
