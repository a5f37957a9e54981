/* What the loop comes to: calls whose turn has come, and peers whose held calls may be let go. Invariant: while
 * there are some, somebody settles, or rpc->wake was called. Does not know what a call waits for (resolve.h). */
#include "daemon/rpc/calls/advance.h"

#include "daemon/rpc/resume/absent.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/progress.h"
#include "daemon/rpc/order/resolve.h"
#include "daemon/rpc/handlers/submit.h"

/* Of calls that became ready while others ran: about 0.2 ms of work in one turn. */
enum { TURN_COST = 2 * CALL_INLINE_COST };

bool advance_is_spent(const struct rpc *rpc, int64_t spent)
{
	return spent >= TURN_COST && rpc->wake;
}

/* ---- lists ---- */

void advance_ready(struct call *call)
{
	struct rpc *rpc = call->rpc;

	call->state = CALL_READY;
	call->next_ready = NULL;
	call->prev_ready = rpc->last_ready;
	*(call->prev_ready ? &call->prev_ready->next_ready : &rpc->first_ready) = call;
	rpc->last_ready = call;
}

static void remove_ready(struct call *call)
{
	struct rpc *rpc = call->rpc;

	*(call->prev_ready ? &call->prev_ready->next_ready : &rpc->first_ready) = call->next_ready;
	*(call->next_ready ? &call->next_ready->prev_ready : &rpc->last_ready) = call->prev_ready;
}

void advance_loosen(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->is_loose)
		return;
	peer->is_loose = true;
	peer->next_loose = NULL;
	*(rpc->first_loose ? &rpc->last_loose->next_loose : &rpc->first_loose) = peer;
	rpc->last_loose = peer;
}

void advance_forget(struct rpc *rpc, struct rpc_peer *peer)
{
	struct rpc_peer **at, *before = NULL;

	for (at = &rpc->first_loose; peer->is_loose && *at != peer; at = &before->next_loose)
		before = *at;
	if (peer->is_loose)
		*at = peer->next_loose;
	if (rpc->last_loose == peer)
		rpc->last_loose = before;
	peer->is_loose = false;
	resolve_forget(rpc, peer);
}

/* ---- leaving ---- */

void advance_leave(struct call *call)
{
	if (call->state == CALL_READY)
		remove_ready(call);
	resolve_leave(call);
}

void advance_step_aside(struct call *call)
{
	advance_leave(call);
	call->state = CALL_IN_LINE;
	advance_loosen(call->rpc, call->peer);
}

void advance_step_back(struct call *call)
{
	call->state = CALL_QUEUED;
	resolve_again(call);
}

/* ---- running ---- */

void advance_begin(struct call *call)
{
	if (call_order_of(call) == CALL_AT_ONCE) {
		call->state = CALL_RUNNING;
		perform_begin(call);
	} else {
		resolve_begin(call);
	}
}

static void start(struct call *call)
{
	remove_ready(call);
	call->state = CALL_RUNNING;
	if (call->submission) {
		submit_go_on(call);
	} else if (call->is_paused) {
		call->is_paused = false;
		perform_go_on(call, call_finish_step(call));
	} else if (call->peer->is_closing && !call->is_committed) {
		call_drop(call);
	} else {
		perform_begin(call);
	}
}

/* Of the loop. */
static int64_t turn_cost(const struct call *call)
{
	if (call->is_started)
		return CALL_INLINE_COST;
	if (call_is_long(call->cost))
		return call_is_single(call) ? CALL_OP_COST : CALL_INLINE_COST;
	return call->cost + CALL_OP_COST;
}

static bool run_ready(struct rpc *rpc, int64_t *spent)
{
	struct call *call = rpc->first_ready;

	if (!call || advance_is_spent(rpc, *spent))
		return false;
	*spent += turn_cost(call);
	start(call);
	return true;
}

static void settle_peer(struct rpc *rpc, int64_t *spent)
{
	struct rpc_peer *peer = rpc->first_loose;

	rpc->first_loose = peer->next_loose;
	peer->is_loose = false;
	resolve_held(rpc, peer, spent);
	if (peer->is_closing && !peer->n_calls)
		ending_go_on(rpc, peer);
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

/* Whether a turn has nothing to do. */
static bool is_settled(const struct rpc *rpc)
{
	return !rpc->first_loose && !rpc->first_ready && !rpc->absent && !rpc->service->waiting.first &&
	       !rpc->service->events.ready && rpc->look_ns == UINT64_MAX && rpc->alarm_ns == UINT64_MAX;
}

void advance_settle(struct rpc *rpc)
{
	int64_t spent = rpc->is_awake ? TURN_COST : 0, resolved = 0;

	if (is_settled(rpc))
		return;
	do {
		while (rpc->first_loose && !advance_is_spent(rpc, resolved))
			settle_peer(rpc, &resolved);
		line_serve(rpc);
	} while ((rpc->first_loose && !advance_is_spent(rpc, resolved)) || run_ready(rpc, &spent));
	if ((rpc->first_ready || rpc->first_loose) && !rpc->is_awake) {
		rpc->is_awake = true;
		rpc->wake(rpc->ctx);
	}
	progress_send(rpc);
	set_alarm(rpc);
}
