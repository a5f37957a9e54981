/* One operation per request: write, read, fill, copy, run. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/progress.h"
#include "daemon/rpc/operate.h"

/* The payload may have moved since the request was resolved. */
static void find_payload(struct call *call)
{
	struct op *op = &call->operate->prepared.op;

	if (op->kind == OP_WRITE && !op->system.segment)
		op->system.base = call->request->write->data.data;
}

int handle_operations_end(struct call *call)
{
	struct operate *operate = call->operate;

	call->rpc->clock_ns = operate->end_ns;
	operate_end(operate, 0);
	if (!operate->status)
		operate_record(operate);
	return operate->status;
}

static void on_run(void *arg)
{
	struct call *call = ((struct operate *)arg)->call;

	call_attribute(call);
	perform_go_on(call, handle_operations_end(call));
}

static int run(struct call *call)
{
	struct operate *operate = call->operate;
	struct op *op = &operate->prepared.op;
	int64_t cost = call->cost;
	int status;

	find_payload(call);
	status = operate_begin(operate, &call->reply, NPUMEM__V1__RESPONSE__RESULT_DONE, 0);
	if (status)
		return status;
	/* What went before it may have written what it reads; and of a run that was checked more is known. */
	if (call->is_in_scheduler || call_is_long(cost))
		cost = call_op_cost(call, op);
	if (call_is_long(cost) || call_waits_for_disk(call, op))
		progress_follow(call);
	return operate_run(operate, cost, on_run) ? CALL_ELSEWHERE : handle_operations_end(call);
}

#define OPERATION(name, Message)                                                                                  \
	int resolve_##name(struct call *call, const Npumem__V1__##Message *request)                               \
	{                                                                                                         \
		int status = call_begin_operate(call);                                                            \
		if (!status)                                                                                      \
			status = prepare_##name(&call->binding, request, &call->operate->prepared, call->error);  \
		return status ? status : call_claim_op(call, &call->operate->prepared.op);                        \
	}                                                                                                         \
	int handle_operations_##name(struct call *call, const Npumem__V1__##Message *request)                     \
	{                                                                                                         \
		(void)request;                                                                                    \
		return run(call);                                                                                 \
	}

OPERATION(write, WriteRequest)
OPERATION(read, ReadRequest)
OPERATION(fill, FillRequest)
OPERATION(copy, CopyRequest)
OPERATION(run, RunRequest)
