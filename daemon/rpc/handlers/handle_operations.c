/* One operation per request: write, read, fill, copy, run. */
#include <errno.h>

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/calls/progress.h"
#include "daemon/service/segments.h"

/* The payload may have moved since the request was resolved. */
static void find_payload(struct call *call)
{
	struct op *op = &call->prepared.op;

	if (op->kind == OP_WRITE && !op->system.shared)
		op->system.base = call->request->write->data.data;
}

static void look_for_pages(struct call *call)
{
	struct op *op = &call->prepared.op;

	if (op->system.shared)
		op->system.warm = segments_are_warm(call->session, op);
}

#define OPERATION(name, Message)                                                                                  \
	int resolve_##name(struct call *call, const Npumem__V1__##Message *request)                               \
	{                                                                                                         \
		int status = prepare_##name(&call->binding, request, &call->prepared, call->error);               \
		if (!status)                                                                                      \
			look_for_pages(call);                                                                     \
		return status ? status : call_claim_op(call, &call->prepared.op);                                 \
	}                                                                                                         \
	int handle_operations_##name(struct call *call, const Npumem__V1__##Message *request)                     \
	{                                                                                                         \
		(void)request;                                                                                    \
		return run(call);                                                                                 \
	}

static int on_worked(struct call *call, void *arg);

static void work(void *arg)
{
	struct call *call = arg;

	call->status = operate_run(&call->operate);
}

static int on_worked(struct call *call, void *arg)
{
	(void)arg;
	if (call->status == -EAGAIN)
		return call_later(call, INT64_MAX, work, on_worked, call);
	call->rpc->clock_ns = call->operate.end_ns;
	operate_end(&call->operate, call->status, 0);
	if (!call->status)
		operate_record(&call->operate, &call->recording);
	return call->status;
}

static int run(struct call *call)
{
	struct op *op = &call->prepared.op;
	int64_t cost = call->cost;
	int status;

	find_payload(call);
	op->progress = &call->progress;
	call->operate = (struct operate){.session = call->session,
					 .op = op,
					 .reply = &call->reply,
					 .error = call->error,
					 .now_ns = call->rpc->now_ns,
					 .request = repeat_is_safe(&call->repeat) ? 0 : call->id,
					 .is_final = true};
	status = operate_begin(&call->operate, NPUMEM__V1__RESPONSE__RESULT_DONE);
	if (status)
		return status;
	/* What went before it may have written what it reads; and of a run that was checked more is known. */
	if (call->is_in_scheduler || call_is_long(cost))
		cost = op_cost(call->rpc->service->device, op);
	if (call_is_long(cost)) {
		progress_follow(call);
	} else {
		operate_watch(&call->operate);
		call->operate.start_ns = rpc_clock(call->rpc);
	}
	return call_later(call, cost, work, on_worked, call);
}

OPERATION(write, WriteRequest)
OPERATION(read, ReadRequest)
OPERATION(fill, FillRequest)
OPERATION(copy, CopyRequest)
OPERATION(run, RunRequest)
