/* What a call does once its turn has come: its handler, and what is left of it after that. A step runs on a
 * thread, here, or in another turn of the loop. */
#include "daemon/rpc/calls/perform.h"

#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/known.h"
#include "daemon/rpc/handlers/submit.h"
#include "daemon/rpc/order/line.h"

static int dispatch(struct call *call)
{
	const Npumem__V1__Request *request = call->request;

	call_attribute(call);
	if (call->known)
		return handle_known(call);
	switch (request->call_case) {
#define METHOD(name, CALL, Message, handler, resolver, order)                                                     \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return handler(call, request->name);
#include "daemon/rpc/methods.def"
#undef METHOD
	default:
		return 0;
	}
}

/* A grant has its place in the order like a write, so that from here on none is taken back before the call's end:
 * what it was found to may do when it came may be less by then. What is there already goes on. */
static int check_access(struct call *call)
{
	if (!call->is_in_scheduler || call->is_committed)
		return 0;
	return binding_check(&call->binding, call->error);
}

void perform_begin(struct call *call)
{
	int status = check_access(call);

	call->is_started = true;
	perform_go_on(call, status ? status : dispatch(call));
}

int perform_again(struct call *call)
{
	npumem_error_clear(call->error);
	reply_drop(&call->reply);
	return dispatch(call);
}

static void work_step(void *arg)
{
	struct call *call = arg;

	call->step.work(call->step.arg);
}

static void step_done(void *arg)
{
	struct call *call = arg;
	struct rpc *rpc = call->rpc;

	perform_go_on(call, call_finish_step(call));
	advance_settle(rpc);
}

/* A call that turns out to be long only now is not refused for it. One whose payload could be gone meanwhile is
 * done here: its operations point into the message, which can no longer move. */
static bool submit_step(struct call *call)
{
	if (!call_outlives_message(call))
		return false;
	if (charge_call(call))
		npumem_error_clear(call->error);
	return call_submit_work(call, work_step, step_done, call);
}

static bool pause_step(struct call *call)
{
	if (!call->rpc->wake || !call_outlives_message(call))
		return false;
	if (charge_call(call))
		npumem_error_clear(call->error);
	call->is_paused = true;
	advance_ready(call);
	return true;
}

/* From step to step. Those that are done here come one after the other, so that many do not become a deep stack.
 */
void perform_go_on(struct call *call, int status)
{
	while (status == CALL_LATER) {
		if (!call->step.work && pause_step(call))
			return;
		if (call->step.is_long && submit_step(call))
			return;
		if (call->step.work)
			work_step(call);
		status = call_finish_step(call);
	}
	if (status == CALL_ELSEWHERE || line_keeps(call, status))
		return;
	call_end(call, call->error->status ? call->error->status : status);
}

void perform_cancel(struct call *call)
{
	const struct executor *executor = &call->rpc->executor;

	atomic_store(&call->progress.cancelled, true);
	if (!executor->withdraw || call->state != CALL_RUNNING)
		return;
	if (call->submission) {
		submit_hurry(call);
	} else if (call_is_single(call) && executor->withdraw(executor->ctx, call->session->uid, call)) {
		/* Which takes no time, as it is not wanted. */
		work_step(call);
		perform_go_on(call, call_finish_step(call));
	}
}
