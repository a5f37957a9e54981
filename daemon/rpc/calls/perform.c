/* What a call does once its turn has come: its handler, and what is left of it after that. A step runs on a
 * thread, here, or in another turn of the loop. */
#include "daemon/rpc/calls/perform.h"

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/order/gate.h"

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
	call_attribute(call);
	if (!status)
		status = call->handle ? call->handle(call) : handler_handle(call);
	perform_go_on(call, status);
}

static void work_step(void *arg)
{
	struct call *call = arg;

	call->step.work(call);
}

static void step_done(void *arg)
{
	struct call *call = arg;

	perform_go_on(call, perform_finish_step(call));
}

static bool pause_step(struct call *call)
{
	bool is_due = !call->step.goes_behind && !call->step.waits;

	if ((is_due && !rpc_has_loop(call->rpc)) || !call_outlives_message(call))
		return false;
	charge_in_any_case(call);
	call->is_paused = true;
	if (call->step.goes_behind) {
		gate_enter_again(call);
	} else if (is_due) {
		if (call->is_in_scheduler)
			scheduler_pauses(&call->rpc->service->scheduler, &call->entry);
		call_make_ready(call);
	} else {
		call->state = CALL_QUEUED;
	}
	return true;
}

/* From step to step. Those that are done here come one after the other, so that many do not become a deep stack.
 */
void perform_go_on(struct call *call, int status)
{
	while (status == CALL_LATER) {
		/* The rpc has one struct for errors, and other requests use it before this one goes on. */
		if (call->rpc->error.status)
			npumem_error_clear(&call->rpc->error);
		if (!call->step.work && pause_step(call))
			return;
		if (call->step.is_long && perform_away(call, &call->away, true, work_step, step_done, call))
			return;
		if (call->step.work)
			work_step(call);
		status = perform_finish_step(call);
	}
	if (status == CALL_ELSEWHERE || line_keeps(call, status))
		return;
	life_end(call, call->error->status ? call->error->status : status);
}

void perform_cancel(struct call *call)
{
	atomic_store(&call->progress.cancelled, true);
	/* Of one that waits to read, too, all that is left is an answer, which nobody reads. */
	if (call->state == CALL_QUEUED && call->step.waits && call->peer->is_closing) {
		call->is_paused = false;
		call->state = CALL_RUNNING;
	}
	if (!call->withdraw || call->state != CALL_RUNNING)
		return;
	call_attribute(call);
	perform_go_on(call, call->withdraw(call));
}

/* ---- the next step ---- */

int perform_later(struct call *call, int64_t cost, void (*work)(struct call *call),
		  int (*finish)(struct call *call))
{
	call->step = (struct call_step){.work = work, .finish = finish, .is_long = call_is_long(cost)};
	/* What it costs may not have been known when it arrived. */
	if (call_is_very_long(cost) && call->is_in_scheduler)
		scheduler_lasts(&call->rpc->service->scheduler, &call->entry);
	return CALL_LATER;
}

int perform_pause(struct call *call, int (*finish)(struct call *call))
{
	call->step = (struct call_step){.finish = finish};
	return CALL_LATER;
}

int perform_go_behind(struct call *call, int (*finish)(struct call *call))
{
	call->step = (struct call_step){.finish = finish, .goes_behind = true};
	return CALL_LATER;
}

int perform_read_too(struct call *call, const struct tensor *tensor, int (*finish)(struct call *call))
{
	const struct tensor_range range = tensor_range(tensor);

	if (scheduler_read_too(&call->rpc->service->scheduler, &call->entry, &range))
		return finish(call);
	call->step = (struct call_step){.finish = finish, .waits = true};
	return CALL_LATER;
}

/* ---- threads ---- */

static _Thread_local struct runs_note *noted; /* of the work on this thread */

static void work_away(void *arg)
{
	struct call_work *work = arg;

	noted = &work->run;
	runs_begin(noted);
	work->work(work->arg);
	runs_end(noted);
	noted = NULL;
}

void perform_note_pause(bool is_paused)
{
	if (noted && is_paused)
		runs_end(noted);
	else if (noted)
		runs_begin(noted);
}

static void on_worked(void *arg)
{
	struct call_work *work = arg;
	struct rpc *rpc = work->call->rpc;

	work->done(work->arg);
	rpc->settle(rpc);
}

bool perform_away(struct call *call, struct call_work *to, bool waits, void (*work)(void *arg),
		  void (*done)(void *arg), void *arg)
{
	if (!call->rpc->executor.submit || !call_outlives_message(call))
		return false;
	charge_in_any_case(call);
	*to = (struct call_work){.call = call, .work = work, .done = done, .arg = arg};
	runs_plan(&to->run, call->session, call->id, call->method);
	return rpc_submit(call->rpc, call->session->user, waits, work_away, on_worked, to);
}

bool perform_withdraw(struct call_work *work)
{
	const struct rpc *rpc = work->call->rpc;
	const struct rpc_executor *executor = &rpc->executor;

	return executor->withdraw && executor->withdraw(executor->ctx, work->call->session->user, work);
}

int perform_refuse(const struct call *call, struct npumem_error *error)
{
	if (!call->rpc->executor.submit || !call_outlives_message(call))
		return 0;
	return npumem_error_set(error, NPUMEM_RESOURCE_EXHAUSTED,
				"the daemon has no memory or no thread for a long operation");
}
