/* The states of a call (call.h). What a session sends is resolved in the order sent: a call that must wait for one
 * before it is held, and so are all behind it but those that depend on nothing. */
#include "daemon/rpc/calls/advance.h"

#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/calls/hint.h"
#include "daemon/rpc/calls/line.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/calls/progress.h"
#include "daemon/rpc/handlers/submit.h"

/* Of calls that became ready while others ran: about 0.2 ms of work in one turn. */
enum {
	TURN_COST = 2 * CALL_INLINE_COST,
	LOOK_COST = CALL_OP_COST / 4,
	BYTE_COST = 50, /* of a message that is resolved, or looked at */
};

static struct call *call_of(struct scheduler_entry *entry)
{
	return (struct call *)entry;
}

static struct scheduler *scheduler_of(const struct call *call)
{
	return &call->rpc->service->scheduler;
}

/* Whether the rest of the turn is for others. */
static bool is_spent(const struct rpc *rpc, int64_t spent)
{
	return spent >= TURN_COST && rpc->wake;
}

/* ---- lists ---- */

static void add_held(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->next_held = NULL;
	call->prev_held = peer->last_held;
	*(call->prev_held ? &call->prev_held->next_held : &peer->first_held) = call;
	peer->last_held = call;
}

static void remove_held(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (peer->next_to_look == call)
		peer->next_to_look = call->next_held;
	*(call->prev_held ? &call->prev_held->next_held : &peer->first_held) = call->next_held;
	*(call->next_held ? &call->next_held->prev_held : &peer->last_held) = call->prev_held;
}

static void add_ready(struct call *call)
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
	for (at = &rpc->first_blocked; peer->is_blocked && *at != peer;)
		at = &(*at)->next_blocked;
	if (peer->is_blocked)
		*at = peer->next_blocked;
	peer->is_loose = peer->is_blocked = false;
}

/* ---- resolving ---- */

static int resolve(struct call *call)
{
	const Npumem__V1__Request *request = call->request;

	switch (request->call_case) {
#define METHOD(name, CALL, Message, handler, resolver, order)                                                     \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return resolver(call, request->name);
#include "daemon/rpc/methods.def"
#undef METHOD
	default:
		return 0;
	}
}

/* As if nobody had looked. */
static void unresolve(struct call *call)
{
	npumem_error_clear(call->error);
	reply_drop(&call->reply);
	call->cost = 0;
	call->pending = call->reply_bytes = 0;
	call->changes_room = false;
	binding_deinit(&call->binding);
	binding_init(&call->binding, call->session, &call->entry);
}

/* What a call that is held may access keeps its place in the queues of what is there. What it kept before is given
 * up only then. */
static void look_ahead(struct call *call)
{
	struct claim *hint = &call->hints[call->which_hint ^= 1];

	if (!call->is_hinted)
		claim_init(&call->hints[call->which_hint ^ 1], call->rpc->heap);
	call->is_hinted = true;
	claim_init(hint, call->rpc->heap);
	hint_claim(call, hint);
	scheduler_claim(scheduler_of(call), &call->entry, hint->accesses, hint->n);
	claim_deinit(&call->hints[call->which_hint ^ 1]);
	if (call->charge)
		call_charge_more(call);
}

/* Its first call waits until some held one is resolved, or gone, or nobody has the device for itself. */
static void block(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->is_blocked)
		return;
	peer->is_blocked = true;
	peer->next_blocked = rpc->first_blocked;
	rpc->first_blocked = peer;
}

static void unblock_all(struct rpc *rpc)
{
	struct rpc_peer *peer;

	while ((peer = rpc->first_blocked)) {
		rpc->first_blocked = peer->next_blocked;
		peer->is_blocked = false;
		advance_loosen(rpc, peer);
	}
}

/* Whether what its session sent before it lets it be resolved. */
static bool may_resolve(const struct call *call)
{
	const struct rpc_peer *peer = call->peer;

	switch (call_order_of(call)) {
	case CALL_AFTER_ALL:
		return !peer->n_in_order;
	case CALL_GIVES_ROOM:
	case CALL_MAKES_TENSORS:
		return !peer->n_holding && !peer->n_room;
	default:
		return !peer->n_holding;
	}
}

/* In the order; counted until it leaves. */
static void enter_order(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->holds_others = call_order_of(call) >= CALL_MAKES_TENSORS;
	call->is_in_order = true;
	peer->n_in_order++;
	peer->n_holding += call->holds_others;
	peer->n_room += call->changes_room;
}

static void leave_order(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (!call->is_in_order)
		return;
	call->is_in_order = false;
	peer->n_in_order--;
	peer->n_holding -= call->holds_others;
	peer->n_room -= call->changes_room;
}

static void on_ready(struct scheduler_entry *entry)
{
	add_ready(call_of(entry));
}

/* What is not done when the loop goes on must be in the books. */
static void check_charge(struct call *call)
{
	struct rpc *rpc = call->rpc;
	int status;

	if (call->state == CALL_READY && rpc->first_ready == call && !rpc->is_awake && !call_is_long(call->cost))
		return;
	status = call_charge(call);
	if (status && !call->is_committed)
		call_end(call, status);
}

static void enter_scheduler(struct call *call)
{
	if (call->is_in_scheduler)
		return;
	call->entry.ready = on_ready;
	call->is_in_scheduler = true;
	scheduler_enter(scheduler_of(call), &call->entry, &call->session->user->order);
}

/* All that the peer has held arrives once more, after everybody else: one of them is to free what came into being
 * while it was held, and somebody has claimed it meanwhile. So everybody still waits only for what arrived before.
 */
static void arrive_again(struct rpc_peer *peer)
{
	for (struct call *call = peer->first_held; call; call = call->next_held) {
		scheduler_leave(scheduler_of(call), &call->entry);
		scheduler_enter(scheduler_of(call), &call->entry, &call->session->user->order);
		look_ahead(call);
	}
}

static int try_to_resolve(struct call *call)
{
	int status = resolve(call);

	if (status != BINDING_BLOCKED && status != BINDING_LATE)
		return status;
	unresolve(call);
	claim_deinit(&call->claim);
	claim_init(&call->claim, call->rpc->heap);
	return status;
}

/* Its accesses are known for good. */
static void claim_for_good(struct call *call)
{
	scheduler_claim(scheduler_of(call), &call->entry, call->claim.accesses, call->claim.n);
	if (call->is_hinted)
		claim_deinit(&call->hints[call->which_hint]);
	scheduler_let_go(scheduler_of(call), &call->entry);
	if (call->is_hinted)
		unblock_all(call->rpc);
	check_charge(call);
}

/* Those that are held still may be to use the bytes behind a view that was made just now, by its name: each gets
 * its place in the queue of these bytes before the view's own request, which has one, gives it up. False where
 * that goes on in another turn. */
static bool look_again(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	struct call *call;

	while ((call = peer->next_to_look)) {
		if (is_spent(rpc, *spent)) {
			advance_loosen(rpc, peer);
			return false;
		}
		*spent += LOOK_COST + (int64_t)call->bytes * BYTE_COST;
		peer->next_to_look = call->next_held;
		look_ahead(call);
	}
	call = peer->naming;
	peer->naming = NULL;
	claim_for_good(call);
	return true;
}

/* Whether it is over when its handler returns, and nobody is to go before it: it need not stand in any line. */
static bool may_run_at_once(const struct call *call)
{
	const struct rpc *rpc = call->rpc;

	return call_is_single(call) && !call_is_long(call->cost) && call->state != CALL_HELD &&
	       !rpc->first_ready && !rpc->is_awake &&
	       scheduler_is_clear(&rpc->service->scheduler, &call->session->user->order, call->claim.accesses,
				  call->claim.n);
}

/* Its tensors are found and claimed, or it is refused; false where it has to be held. */
static bool resolve_now(struct call *call)
{
	int status = try_to_resolve(call);

	if (status == BINDING_LATE) {
		arrive_again(call->peer);
		unblock_all(call->rpc);
		status = try_to_resolve(call);
	}
	if (status == BINDING_BLOCKED) {
		block(call->rpc, call->peer);
		return false;
	}
	if (call->state == CALL_HELD)
		remove_held(call);
	call->state = CALL_QUEUED;
	if (status) {
		call_end(call, status);
		return true;
	}
	binding_bind(&call->binding);
	if (may_run_at_once(call)) {
		call->state = CALL_RUNNING;
		perform_begin(call);
		return true;
	}
	enter_scheduler(call);
	enter_order(call);
	if (call->method == CALL_METHOD_VIEW && call->peer->first_held) {
		call->peer->naming = call;
		call->peer->next_to_look = call->peer->first_held;
	} else {
		claim_for_good(call);
	}
	return true;
}

/* What is left for another turn stays loose. */
static void let_go_held(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	if (peer->naming && !look_again(rpc, peer, spent))
		return;
	while (peer->first_held && may_resolve(peer->first_held)) {
		const struct call *call = peer->first_held;

		if (is_spent(rpc, *spent)) {
			advance_loosen(rpc, peer);
			return;
		}
		*spent += CALL_OP_COST + (int64_t)call->bytes * BYTE_COST;
		if (!resolve_now(peer->first_held) || (peer->naming && !look_again(rpc, peer, spent)))
			return;
	}
}

/* ---- leaving ---- */

static void leave_scheduler(struct call *call)
{
	if (call->state == CALL_READY)
		remove_ready(call);
	else if (call->is_in_scheduler && call->state == CALL_HELD)
		remove_held(call);
	if (!call->is_in_scheduler)
		return;
	scheduler_leave(scheduler_of(call), &call->entry);
	if (call->is_hinted || call->entry.is_exclusive)
		unblock_all(call->rpc);
	call->is_in_scheduler = false;
}

void advance_leave(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (peer->naming == call)
		peer->naming = peer->next_to_look = NULL;
	leave_scheduler(call);
	leave_order(call);
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
	enter_scheduler(call);
	scheduler_claim(scheduler_of(call), &call->entry, call->claim.accesses, call->claim.n);
	scheduler_let_go(scheduler_of(call), &call->entry);
}

/* ---- running ---- */

void advance_yield(struct call *call)
{
	add_ready(call);
}

void advance_begin(struct call *call)
{
	int status;

	if (call_order_of(call) == CALL_AT_ONCE) {
		call->state = CALL_RUNNING;
		perform_begin(call);
		return;
	}
	call->entry.arrival = scheduler_next_arrival(scheduler_of(call));
	call->state = CALL_QUEUED;
	if (!call->peer->first_held && !call->peer->naming && may_resolve(call) && resolve_now(call))
		return;
	enter_scheduler(call);
	call->state = CALL_HELD;
	add_held(call);
	look_ahead(call);
	status = call_charge(call);
	if (status)
		call_end(call, status);
}

static void start(struct call *call)
{
	remove_ready(call);
	call->state = CALL_RUNNING;
	if (call->submission) {
		submit_go_on(call);
	} else if (call->is_paused) {
		call->is_paused = false;
		perform_go_on(call, call->step.finish(call, call->step.arg));
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

	if (!call || is_spent(rpc, *spent))
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
	let_go_held(rpc, peer, spent);
	if (peer->is_closing && !peer->n_calls)
		ending_go_on(rpc, peer);
}

static void set_alarm(struct rpc *rpc)
{
	uint64_t at = line_alarm(rpc), due = progress_due(rpc);

	at = due < at ? due : at;
	if (!rpc->set_alarm || at == rpc->alarm_ns)
		return;
	rpc->alarm_ns = at;
	rpc->set_alarm(rpc->ctx, at);
}

/* Whether a turn has nothing to do. */
static bool is_settled(const struct rpc *rpc)
{
	return !rpc->first_loose && !rpc->first_ready && !rpc->service->waiting.first &&
	       !rpc->service->events.ready && rpc->look_ns == UINT64_MAX && rpc->alarm_ns == UINT64_MAX;
}

void advance_settle(struct rpc *rpc)
{
	int64_t spent = rpc->is_awake ? TURN_COST : 0, resolved = 0;

	if (is_settled(rpc))
		return;
	do {
		while (rpc->first_loose && !is_spent(rpc, resolved))
			settle_peer(rpc, &resolved);
		line_serve(rpc);
	} while ((rpc->first_loose && !is_spent(rpc, resolved)) || run_ready(rpc, &spent));
	if ((rpc->first_ready || rpc->first_loose) && !rpc->is_awake) {
		rpc->is_awake = true;
		rpc->wake(rpc->ctx);
	}
	progress_send(rpc);
	set_alarm(rpc);
}
