/* Lists of operations that stay here, to be run by their ids. */
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/lists.h"

/* Room for the answer first: a list that cannot be told of is not kept. */
int handle_lists_keep(struct call *call, const Npumem__V1__KeepRequest *request)
{
	Npumem__V1__Kept message = NPUMEM__V1__KEPT__INIT;
	int status = reply_reserve(&call->reply, 4 * REPLY_TAG_BYTES, call->error);

	if (!status)
		status = lists_keep(call, &message.bytes);
	if (status)
		return status;
	message.list = request->list;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_KEPT, &message.base);
	return 0;
}

int handle_lists_unkeep(struct call *call, const Npumem__V1__UnkeepRequest *request)
{
	Npumem__V1__Unkept message = NPUMEM__V1__UNKEPT__INIT;
	int status = reply_result(&call->reply, NPUMEM__V1__RESPONSE__RESULT_UNKEPT, &message.base, call->error);

	return status ? status : lists_drop(call->peer, request->list, call->error);
}
