/* A call in line is tried again from the loop, and in no other way: at once, or, where it may lie over others and
 * so may take many turns, as a request in the order like those that never stood in line. A user has one such
 * search at a time, and the others in line go on beside it. Invariant: a waiter is in the service's line exactly
 * while its call's state is CALL_IN_LINE, or it is searched for; and call->error says in line what it lacked when
 * it was last tried. */
#include "daemon/rpc/order/line.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/life.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/order/gate.h"

static struct call *call_of(struct waiter *waiter)
{
	return (struct call *)((char *)waiter - offsetof(struct call, waiter));
}

/* It leaves the order: what its session sends after it does not wait for it. */
static void step_aside(struct call *call)
{
	gate_leave(call);
	/* What it was behind is over. */
	call->claim.n = 0;
	call->state = CALL_IN_LINE;
	rpc_wake(call->rpc, call->peer);
}

/* What was missing now stays in the message and the fields. */
static void say_never(struct call *call)
{
	struct npumem_error why = *call->error;

	snprintf(call->error->message, sizeof(call->error->message),
		 "not even an empty device has room for this: %.400s", why.message);
}

static bool join(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct npumem_error why;

	if (call->turn != TENSORS_LAST || !tensors_lacked_room(call->error) || call_is_cancelled(call))
		return false;
	if (!call->fits_empty) {
		say_never(call);
		return false;
	}
	call->waiter.user = call->session->user;
	call->waiter.deadline_ns = rpc->now_ns() + UINT64_C(1000000) * call->request->alloc->wait_ms;
	if (life_keep_error(call))
		return false;
	why = *call->error;
	npumem_error_clear(call->error);
	if (charge_call(call) || waiting_add(&rpc->service->waiting, &call->waiter, call->error))
		return false;
	*call->error = why;
	step_aside(call);
	return true;
}

static void leave_line(struct call *call)
{
	waiting_served(&call->rpc->service->waiting, &call->waiter);
	call->session->user->order.was_served = true;
}

static bool keeps_searched(struct call *call, int status)
{
	waiting_search_ended(&call->rpc->service->waiting, &call->waiter);
	if (!status || !tensors_lacked_room(call->error) || call_is_cancelled(call)) {
		leave_line(call);
		return false;
	}
	step_aside(call);
	return true;
}

bool line_keeps(struct call *call, int status)
{
	if (call_is_searched_for(call))
		return keeps_searched(call, status);
	return status && join(call);
}

static bool is_closed(const struct rpc *rpc)
{
	return !rpc->service->waiting.first || scheduler_is_exclusive(&rpc->service->scheduler);
}

uint64_t line_alarm(const struct rpc *rpc)
{
	uint64_t deadline, window_end;

	if (is_closed(rpc))
		return WAITING_NEVER;
	deadline = rpc->service->waiting.deadline_ns;
	window_end = waiting_window_end(rpc->service);
	return deadline < window_end ? deadline : window_end;
}

/* ---- what a turn does ---- */

/* At least one of each user in a round, as its first one holds others up. */
static void ask_for_share(const struct call *call)
{
	struct limits_user *user = call->session->user;

	user->order.is_short = user->order.was_served && !persist_has_share(&call->rpc->service->persist, user);
}

void line_synced(struct rpc *rpc, struct limits_user *user)
{
	user->order.was_served = false;
	if (!user->order.is_short)
		return;
	user->order.is_short = false;
	waiting_try_again(&rpc->service->waiting, user);
	fair_queue_add(&rpc->service->queue, &rpc->service->self, &rpc->line);
}

static void try(struct call *call)
{
	const struct rpc *rpc = call->rpc;
	int status;

	ask_for_share(call);
	if (waiting_is_held_back(&call->waiter))
		return;
	/* Its deadline is seen to between two searches: the next one would put it off again. */
	if (call->waiter.reuses && rpc->now_ns() >= call->waiter.deadline_ns)
		return;
	call->turn = TENSORS_HEAD;
	npumem_error_clear(call->error);
	if (call->waiter.reuses) {
		waiting_search_begins(&call->rpc->service->waiting, &call->waiter);
		gate_enter_again(call);
		return;
	}
	reply_drop(&call->reply);
	call_attribute(call);
	status = handler_handle(call);
	if (status && tensors_lacked_room(call->error))
		return;
	leave_line(call);
	call->state = CALL_RUNNING;
	life_end(call, status);
}

void line_serve(struct rpc *rpc)
{
	const struct waiting *waiting = &rpc->service->waiting;
	struct waiter *waiter;
	uint64_t end;

	if (is_closed(rpc) || rpc->line.prev || (!waiting->is_due && !waiting->room))
		return;
	end = rpc_spell_end(rpc);
	while (!rpc_spell_is_over(rpc, end) && (waiter = waiting_next(rpc->service)))
		try(call_of(waiter));
	if (rpc_spell_is_over(rpc, end))
		fair_queue_add(&rpc->service->queue, &rpc->service->self, &rpc->line);
}

static void run_line(struct fair_work *work)
{
	line_serve((struct rpc *)((char *)work - offsetof(struct rpc, line)));
}

void line_init(struct rpc *rpc)
{
	rpc->line.run = run_line;
}

static void refuse(struct call *call)
{
	struct npumem_error why = *call->error;

	call->error->status = NPUMEM_DEADLINE_EXCEEDED;
	snprintf(call->error->message, sizeof(call->error->message), "waited %" PRIu32 " ms: %.400s",
		 call->request->alloc->wait_ms, why.message);
	life_end(call, NPUMEM_DEADLINE_EXCEEDED);
}

void line_tick(struct rpc *rpc)
{
	struct waiter *waiter;
	uint64_t end;

	if (is_closed(rpc))
		return;
	waiting_claims_changed(&rpc->service->waiting);
	line_serve(rpc);
	end = rpc_spell_end(rpc);
	while (!rpc_spell_is_over(rpc, end) && (waiter = waiting_expired(&rpc->service->waiting, rpc->now_ns())))
		refuse(call_of(waiter));
}

void line_end(struct call *call)
{
	if (call_is_searched_for(call))
		atomic_store(&call->progress.cancelled, true);
	if (call->state != CALL_IN_LINE)
		return;
	npumem_error_clear(call->error);
	npumem_error_set(call->error, NPUMEM_UNAVAILABLE, "the daemon is going down");
	npumem_error_number(call->error, "going_down", 1);
	life_end(call, NPUMEM_UNAVAILABLE);
}
