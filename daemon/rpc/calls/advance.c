/* Ready calls, and peers whose held calls may be resolved, are work of their users in service->queue. Nothing here
 * is called back from below: what becomes possible is queued, and the loop runs it, or advance_settle where there
 * is no loop. Does not know what a call waits for (order/gate.h). */
#include "daemon/rpc/calls/advance.h"

#include <stddef.h>

#include "daemon/rpc/resume/absent.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/progress.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/rpc/handlers/known.h"

bool advance_is_spent(const struct rpc *rpc, int64_t spent)
{
	return spent >= CALL_INLINE_COST && rpc_has_loop(rpc);
}

/* ---- the queue ---- */

static void start(struct call *call);

static void run_call(struct fair_work *work)
{
	struct call *call = (struct call *)((char *)work - offsetof(struct call, work));
	struct rpc *rpc = call->rpc;

	start(call);
	runs_off_loop(rpc->service);
}

void advance_ready(struct call *call)
{
	call->state = CALL_READY;
	call->work = (struct fair_work){.run = run_call};
	fair_queue_add(&call->rpc->service->queue, &call->session->user->loop, &call->work);
}

/* What waits is dropped, what runs is stopped where it can be. False where it goes on in another turn. */
static bool close_calls(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	struct call *call;

	while ((call = peer->next_to_close)) {
		if (advance_is_spent(rpc, *spent)) {
			advance_make_runnable(rpc, peer);
			return false;
		}
		*spent += CALL_OP_COST + (int64_t)call->bytes * CALL_BYTE_COST;
		peer->next_to_close = call->next;
		if (call_is_started(call))
			perform_cancel(call);
		else if (!call->is_committed)
			call_drop(call);
	}
	return true;
}

static void run_peer(struct fair_work *work)
{
	struct rpc_peer *peer = (struct rpc_peer *)((char *)work - offsetof(struct rpc_peer, turn));
	struct rpc *rpc = peer->rpc;
	int64_t spent = 0;

	if (close_calls(rpc, peer, &spent)) {
		gate_open(rpc, peer, &spent);
		if (peer->is_closing && !peer->n_calls)
			ending_go_on(rpc, peer);
	}
	runs_off_loop(rpc->service);
}

void advance_make_runnable(struct rpc *rpc, struct rpc_peer *peer)
{
	peer->rpc = rpc;
	peer->turn.run = run_peer;
	fair_queue_add(&rpc->service->queue, &peer->session->user->loop, &peer->turn);
}

void advance_forget(struct rpc *rpc, struct rpc_peer *peer)
{
	fair_queue_remove(&peer->turn);
	gate_forget(rpc, peer);
}

/* ---- leaving ---- */

void advance_leave(struct call *call)
{
	if (call->state == CALL_READY)
		fair_queue_remove(&call->work);
	gate_leave(call);
}

void advance_step_aside(struct call *call)
{
	advance_leave(call);
	/* What it was behind is over. */
	call->claim.n = 0;
	call->state = CALL_IN_LINE;
	advance_make_runnable(call->rpc, call->peer);
}

/* ---- running ---- */

void advance_begin(struct call *call)
{
	int status;

	if (call_row(call)->kind <= METHODS_KIND_FREE_STANDING) {
		call->state = CALL_RUNNING;
		if (known_is_deadly(call, &status))
			call_end(call, status);
		else
			perform_begin(call);
	} else {
		gate_receive(call);
	}
}

static void start(struct call *call)
{
	call->state = CALL_RUNNING;
	if (call->is_refused) {
		call_end(call, call->error->status);
	} else if (call->is_paused) {
		call->is_paused = false;
		perform_go_on(call, perform_finish_step(call));
	} else if (call->peer->is_closing && !call->is_committed) {
		call_drop(call);
	} else {
		perform_begin(call);
	}
}

/* At once, while its message is there: what runs later has to keep a copy of it. */
void advance_arrived(struct rpc *rpc)
{
	struct call *call = rpc->arriving;

	if (!call || call->state != CALL_READY || call->is_started)
		return;
	fair_queue_remove(&call->work);
	start(call);
}

static void set_alarm(struct rpc *rpc)
{
	uint64_t at = line_alarm(rpc), due = progress_due(rpc);

	at = due < at ? due : at;
	due = absent_due(rpc);
	at = due < at ? due : at;
	if (!rpc->set_alarm || at == rpc->alarm_ns)
		return;
	rpc->alarm_ns = at;
	rpc->set_alarm(rpc->ctx, at);
}

/* Whether there is nothing to do but what is queued. */
static bool is_settled(const struct rpc *rpc)
{
	return !rpc->absent && !rpc->service->waiting.first && !rpc->service->events.ready &&
	       rpc->look_ns == UINT64_MAX && rpc->alarm_ns == UINT64_MAX;
}

void advance_settle(struct rpc *rpc)
{
	struct fair_queue *queue = &rpc->service->queue;
	bool runs_all = !rpc_has_loop(rpc);

	if (is_settled(rpc) && (!runs_all || fair_queue_is_empty(queue))) {
		runs_off_loop(rpc->service);
		return;
	}
	line_serve(rpc);
	while (runs_all && !fair_queue_is_empty(queue)) {
		struct fair_work *work = fair_queue_take(queue);

		work->run(work);
		line_serve(rpc);
	}
	progress_send(rpc);
	set_alarm(rpc);
	runs_off_loop(rpc->service);
}
