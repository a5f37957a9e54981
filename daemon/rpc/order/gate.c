/* Invariant: peer->n_arrived counts the calls of the peer that have arrived, wait in no line for room and have not
 * ended; n_shut those of them that shut the gate. */
#include "daemon/rpc/order/gate.h"

#include <utlist.h>

#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/known.h"

/* Accesses of a user's requests that have arrived, beyond which no more arrive: when one ends, its turn looks at
 * those behind it, and the first of 1,024 operations may have as many queues. */
enum { ACCESSES_MOST = 6144, ACCESSES_AGAIN = ACCESSES_MOST / 4 * 3 };

static struct scheduler *scheduler_of(const struct call *call)
{
	return &call->rpc->service->scheduler;
}

/* ---- at the gate ---- */

static void add_held(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->state = CALL_HELD;
	call->is_held = true;
	call->next_held = NULL;
	call->prev_held = peer->last_held;
	*(call->prev_held ? &call->prev_held->next_held : &peer->first_held) = call;
	peer->last_held = call;
}

static void remove_held(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->is_held = false;
	*(call->prev_held ? &call->prev_held->next_held : &peer->first_held) = call->next_held;
	*(call->next_held ? &call->next_held->prev_held : &peer->last_held) = call->prev_held;
}

static struct scheduler_user *user_of(const struct rpc_peer *peer)
{
	return &peer->session->user->order;
}

/* The peer's requests arrive when the user's accesses are fewer, behind those of peers that wait already. */
static void wait_for_fewer(struct rpc_peer *peer)
{
	if (peer->is_full)
		return;
	peer->is_full = true;
	DL_APPEND2(user_of(peer)->first_full, peer, prev_full, next_full);
}

static void stop_waiting(struct rpc_peer *peer)
{
	peer->is_full = false;
	DL_DELETE2(user_of(peer)->first_full, peer, prev_full, next_full);
}

/* One at a time, which wakes the next when it has had its turn: so each gets some of what room there is. */
static void wake_one(struct rpc *rpc, struct scheduler_user *user, size_t below)
{
	struct rpc_peer *peer = user->first_full;

	if (!peer || user->n_accesses >= below)
		return;
	stop_waiting(peer);
	peer->is_woken = true;
	advance_make_runnable(rpc, peer);
}

void gate_fewer(struct rpc *rpc, struct scheduler_user *user)
{
	wake_one(rpc, user, ACCESSES_AGAIN);
}

void gate_forget(struct rpc *rpc, struct rpc_peer *peer)
{
	if (peer->is_full)
		stop_waiting(peer);
	/* It may have been woken, and had no turn yet. */
	gate_fewer(rpc, user_of(peer));
}

/* Whether what its session sent before it lets it arrive. */
static bool is_next(const struct call *call)
{
	const struct rpc_peer *peer = call->peer;

	return call_row(call)->kind == METHODS_KIND_BARRIER ? !peer->n_arrived : !peer->n_shut;
}

/* Peers that wait go first. But a client that sends one operation at a time does not wait for the long backlog of
 * another client of its user. */
static bool has_room(const struct call *call)
{
	const struct rpc_peer *peer = call->peer;
	const struct scheduler_user *user = user_of(peer);

	if (call_is_single(call) && !peer->n_arrived)
		return true;
	return user->n_accesses < ACCESSES_MOST && (peer->is_woken || !user->first_full);
}

static bool may_arrive(struct call *call)
{
	if (!is_next(call))
		return false;
	if (has_room(call))
		return true;
	wait_for_fewer(call->peer);
	return false;
}

/* ---- arriving ---- */

static int resolve(struct call *call)
{
	int status;

	call_attribute(call);
	if (call->request->again && resolve_known(call, &status))
		return status;
	status = handler_resolve(call);
	return status ? status : known_check(call);
}

static void count(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->has_arrived = true;
	call->shuts = call_row(call)->kind >= METHODS_KIND_TABLE;
	peer->n_arrived++;
	peer->n_shut += call->shuts;
}

void gate_pass(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	peer->n_shut -= call->shuts;
	call->shuts = false;
	if (peer->first_held)
		advance_make_runnable(call->rpc, peer);
}

static void on_ready(struct scheduler_entry *entry)
{
	advance_ready((struct call *)entry);
}

static void enter_scheduler(struct call *call)
{
	call->entry.ready = on_ready;
	call->entry.is_long = call_is_very_long(call->cost);
	call->is_in_scheduler = true;
	scheduler_enter(scheduler_of(call), &call->entry, &call->session->user->order, call->claim.accesses,
			call->claim.n);
}

/* What is not done when the loop goes on must be in the books. */
static void check_charge(struct call *call)
{
	int status;

	if (call->state == CALL_READY && call->rpc->arriving == call && !call_is_long(call->cost))
		return;
	if (call->is_committed) {
		charge_in_any_case(call);
		return;
	}
	status = charge_call(call);
	if (status)
		call_end(call, status);
}

static void take_place(struct call *call)
{
	count(call);
	enter_scheduler(call);
	check_charge(call);
}

/* Whether it is over when its handler returns, and nobody is to go before it: it need not enter any queue. */
static bool may_run_at_once(const struct call *call)
{
	return call_is_single(call) && !call_is_long(call->cost) &&
	       scheduler_is_clear(scheduler_of(call), &call->session->user->order, call->claim.accesses,
				  call->claim.n);
}

/* What it names will go, and is told to be gone only behind the free: a daemon that is killed before would have it
 * again. */
static bool refuse_behind(struct call *call)
{
	struct tensor *going = call->binding.going;

	if (!going || call_keep_error(call))
		return false;
	claim_deinit(&call->claim);
	claim_init(&call->claim, call->rpc->heap);
	claim_look(&call->claim, going);
	call->is_refused = true;
	call->cost = 0;
	take_place(call);
	return true;
}

/* It goes on in another turn of the loop, and is the first at the gate until then. */
static void stay(struct call *call)
{
	int status;

	if (!call->is_held)
		add_held(call);
	status = charge_call(call);
	if (status)
		call_end(call, status);
	else
		advance_make_runnable(call->rpc, call->peer);
}

/* Adds what it takes here at most to *spent: it may run at once, and the few bytes of a message may name a kept
 * list of a thousand operations. */
static void arrive(struct call *call, int64_t *spent)
{
	int status = resolve(call);

	*spent += call->cost < CALL_INLINE_COST ? call->cost : CALL_INLINE_COST;
	if (status == CALL_LATER) {
		stay(call);
		return;
	}
	if (call->is_held)
		remove_held(call);
	call->state = CALL_QUEUED;
	if (status) {
		if (!refuse_behind(call))
			call_end(call, status);
		return;
	}
	binding_bind(&call->binding);
	if (may_run_at_once(call)) {
		call->state = CALL_RUNNING;
		perform_begin(call);
		return;
	}
	take_place(call);
}

void gate_open(struct rpc *rpc, struct rpc_peer *peer, int64_t *spent)
{
	struct call *call;

	while ((call = peer->first_held) && may_arrive(call)) {
		if (advance_is_spent(rpc, *spent)) {
			advance_make_runnable(rpc, peer);
			return;
		}
		*spent += CALL_OP_COST + (int64_t)call->bytes * CALL_BYTE_COST;
		arrive(call, spent);
		if (peer->first_held == call)
			return;
	}
	peer->is_woken = false;
	wake_one(rpc, user_of(peer), ACCESSES_MOST);
}

void gate_receive(struct call *call)
{
	int64_t spent = 0;
	int status;

	if (!call->peer->first_held && may_arrive(call)) {
		arrive(call, &spent);
		return;
	}
	add_held(call);
	status = charge_call(call);
	if (status)
		call_end(call, status);
}

/* ---- leaving ---- */

void gate_leave_queues(struct call *call)
{
	if (!call->is_in_scheduler)
		return;
	call->is_in_scheduler = false;
	scheduler_leave(scheduler_of(call), &call->entry);
	gate_fewer(call->rpc, call->entry.user);
}

void gate_enter_again(struct call *call)
{
	gate_leave_queues(call);
	call->state = CALL_QUEUED;
	enter_scheduler(call);
}

void gate_leave(struct call *call)
{
	if (call->is_held)
		remove_held(call);
	gate_leave_queues(call);
	if (call->has_arrived) {
		call->has_arrived = false;
		call->peer->n_arrived--;
		call->peer->n_shut -= call->shuts;
	}
}
