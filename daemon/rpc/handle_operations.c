/* One operation per request: write, read, fill, copy, run. */
#include "daemon/rpc/call.h"
#include "daemon/rpc/operate.h"

static int answer(struct call *call, int prepared)
{
	if (prepared)
		return prepared;
	return operate(call, NPUMEM__V1__RESPONSE__RESULT_DONE, &call->prepared->op, 0);
}

int handle_operations_write(struct call *call, const Npumem__V1__WriteRequest *request)
{
	return answer(call, prepare_write(call->session, request, call->prepared, call->error));
}

int handle_operations_read(struct call *call, const Npumem__V1__ReadRequest *request)
{
	return answer(call, prepare_read(call->session, request, call->prepared, call->error));
}

int handle_operations_fill(struct call *call, const Npumem__V1__FillRequest *request)
{
	return answer(call, prepare_fill(call->session, request, call->prepared, call->error));
}

int handle_operations_copy(struct call *call, const Npumem__V1__CopyRequest *request)
{
	return answer(call, prepare_copy(call->session, request, call->prepared, call->error));
}

int handle_operations_run(struct call *call, const Npumem__V1__RunRequest *request)
{
	return answer(call, prepare_run(call->session, request, call->prepared, call->error));
}
