/* What a session sends is resolved in the order sent: a call that must wait for one before it is held, and so are
 * all behind it but those that depend on nothing. Invariant: what a held call may access has its place in the
 * queues of what is there; a resolved one has what it does access there, and nothing looks a name up later. */
#include "daemon/rpc/order/resolve.h"

#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/order/hint.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/known.h"

enum {
	LOOK_COST = CALL_OP_COST / 4,
	BYTE_COST = 50, /* of a message that is resolved, or looked at */
};

static struct scheduler *scheduler_of(const struct call *call)
{
	return &call->rpc->service->scheduler;
}

/* ---- the held ---- */

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

/* ---- resolving ---- */

static int find(struct call *call)
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

static int resolve(struct call *call)
{
	int status;

	call_attribute(call);
	if (call->request->again && resolve_known(call, &status))
		return status;
	status = find(call);
	return status ? status : known_check(call);
}

/* As if nobody had looked. */
static void unresolve(struct call *call)
{
	npumem_error_clear(call->error);
	reply_drop(&call->reply);
	call->cost = 0;
	call->pending = call->reply_bytes = 0;
	call->changes_room = false;
	call->known = CALL_UNKNOWN;
	repeat_begin(&call->repeat, call->session);
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
		charge_more(call);
}

/* Its first call waits until some held one is resolved, or gone, something was freed, or nobody has the device for
 * itself. */
static void block(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->is_blocked)
		return;
	peer->is_blocked = true;
	peer->next_blocked = rpc->first_blocked;
	rpc->first_blocked = peer;
}

void resolve_blocked(struct rpc *rpc)
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
	advance_ready((struct call *)entry);
}

/* What is not done when the loop goes on must be in the books. */
static void check_charge(struct call *call)
{
	struct rpc *rpc = call->rpc;
	int status;

	if (call->state == CALL_READY && rpc->first_ready == call && !rpc->is_awake && !call_is_long(call->cost))
		return;
	status = charge_call(call);
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
		resolve_blocked(call->rpc);
	check_charge(call);
}

/* Those that are held still may be to use the bytes behind a view that was made just now, by its name: each gets
 * its place in the queue of these bytes before the view's own request, which has one, gives it up. False where
 * that goes on in another turn. */
static bool look_again(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	struct call *call;

	while ((call = peer->next_to_look)) {
		if (advance_is_spent(rpc, *spent)) {
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
		resolve_blocked(call->rpc);
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
void resolve_held(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	if (peer->naming && !look_again(rpc, peer, spent))
		return;
	while (peer->first_held && may_resolve(peer->first_held)) {
		const struct call *call = peer->first_held;

		if (advance_is_spent(rpc, *spent)) {
			advance_loosen(rpc, peer);
			return;
		}
		*spent += CALL_OP_COST + (int64_t)call->bytes * BYTE_COST;
		if (!resolve_now(peer->first_held) || (peer->naming && !look_again(rpc, peer, spent)))
			return;
	}
}

void resolve_begin(struct call *call)
{
	int status;

	call->entry.arrival = scheduler_next_arrival(scheduler_of(call));
	call->state = CALL_QUEUED;
	if (!call->peer->first_held && !call->peer->naming && may_resolve(call) && resolve_now(call))
		return;
	enter_scheduler(call);
	call->state = CALL_HELD;
	add_held(call);
	look_ahead(call);
	status = charge_call(call);
	if (status)
		call_end(call, status);
}

void resolve_again(struct call *call)
{
	enter_scheduler(call);
	scheduler_claim(scheduler_of(call), &call->entry, call->claim.accesses, call->claim.n);
	scheduler_let_go(scheduler_of(call), &call->entry);
}

/* ---- leaving ---- */

static void leave_scheduler(struct call *call)
{
	if (call->is_in_scheduler && call->state == CALL_HELD)
		remove_held(call);
	if (!call->is_in_scheduler)
		return;
	scheduler_leave(scheduler_of(call), &call->entry);
	if (call->is_hinted || call->entry.is_exclusive)
		resolve_blocked(call->rpc);
	call->is_in_scheduler = false;
}

void resolve_leave(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (peer->naming == call)
		peer->naming = peer->next_to_look = NULL;
	leave_scheduler(call);
	leave_order(call);
}

void resolve_forget(struct rpc *rpc, struct rpc_peer *peer)
{
	struct rpc_peer **at = &rpc->first_blocked;

	if (!peer->is_blocked)
		return;
	while (*at != peer)
		at = &(*at)->next_blocked;
	*at = peer->next_blocked;
	peer->is_blocked = false;
}
