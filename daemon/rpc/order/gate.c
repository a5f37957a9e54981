/* Invariant: peer->n_arrived counts the calls of the peer that have arrived, wait in no line for room and have not
 * ended; n_shut those of them that shut the gate. */
#include "daemon/rpc/order/gate.h"

#include <utlist.h>

/* Accesses of a user's requests that have arrived, beyond which no more arrive: when one ends, its turn checks
 * those behind it, and the first of 1,024 operations may have as many queues. */
enum { ACCESSES_MOST = 6144, ACCESSES_AGAIN = ACCESSES_MOST / 4 * 3 };
/* A durable tensor that is made or freed counts as so many more: its record takes some 370 bytes of a round on the
 * disk, and all that have arrived may run in the same round. */
enum { CHANGE_ACCESSES = 16 };

static struct scheduler *scheduler_of(const struct call *call)
{
	return &call->rpc->service->scheduler;
}

/* ---- at the gate ---- */

void gate_hold(struct call *call)
{
	call->state = CALL_HELD;
	DL_APPEND2(call->peer->first_held, call, prev_held, next_held);
}

static struct scheduler_user *user_of(const struct rpc_peer *peer)
{
	return &peer->session->user->order;
}

static void stop_waiting(struct rpc_peer *peer)
{
	DL_DELETE2(*peer->waits_in, peer, prev_waiting, next_waiting);
	peer->waits_in = NULL;
}

/* The peer's requests arrive when its list is woken, behind those of peers that wait there already. */
static void wait_in(struct rpc_peer *peer, struct rpc_peer **list)
{
	if (peer->waits_in == list)
		return;
	if (peer->waits_in)
		stop_waiting(peer);
	peer->waits_in = list;
	DL_APPEND2(*list, peer, prev_waiting, next_waiting);
}

/* One at a time, which wakes the next when it has had its turn: so each gets some of what room there is. */
static void wake_one(struct rpc *rpc, struct scheduler_user *user, size_t below)
{
	struct rpc_peer *peer = user->first_full;

	if (!peer || user->n_accesses >= below)
		return;
	stop_waiting(peer);
	peer->is_woken = true;
	rpc_wake(rpc, peer);
}

void gate_fewer(struct rpc *rpc, struct scheduler_user *user)
{
	wake_one(rpc, user, ACCESSES_AGAIN);
}

void gate_forget(struct rpc *rpc, struct rpc_peer *peer)
{
	fair_queue_remove(&peer->turn);
	if (peer->waits_in)
		stop_waiting(peer);
	/* It may have been woken, and had no turn yet. */
	gate_fewer(rpc, user_of(peer));
}

static bool is_next(const struct call *call)
{
	const struct rpc_peer *peer = call->peer;

	return call_row(call)->kind == METHODS_KIND_BARRIER ? !peer->n_arrived : !peer->n_shut;
}

bool gate_lets_change(const struct rpc *rpc, struct rpc_peer *peer)
{
	/* A daemon that ends writes everything. */
	if (rpc->keeps_sessions || persist_has_share(&rpc->service->persist, peer->session->user))
		return true;
	wait_in(peer, &user_of(peer)->first_unshared);
	return false;
}

void gate_synced(struct rpc *rpc, struct scheduler_user *user)
{
	struct rpc_peer *peer;

	while ((peer = user->first_unshared)) {
		stop_waiting(peer);
		rpc_wake(rpc, peer);
	}
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

void gate_wake_next(struct rpc *rpc, struct rpc_peer *peer)
{
	peer->is_woken = false;
	wake_one(rpc, user_of(peer), ACCESSES_MOST);
}

bool gate_lets_in(struct call *call)
{
	bool changes = call_row(call)->kind == METHODS_KIND_TABLE;

	if (!is_next(call) || (changes && !gate_lets_change(call->rpc, call->peer)))
		return false;
	if (has_room(call))
		return true;
	wait_in(call->peer, &user_of(call->peer)->first_full);
	return false;
}

/* ---- in the order ---- */

static void count_change(struct call *call)
{
	size_t n = call->n_changed < TENSORS_ALLOC_MAX ? call->n_changed : TENSORS_ALLOC_MAX;

	if (call_row(call)->kind != METHODS_KIND_TABLE || !persist_is_durable(&call->rpc->service->persist))
		return;
	call->change_accesses = CHANGE_ACCESSES * n;
	user_of(call->peer)->n_accesses += call->change_accesses;
}

static void forget_change(struct call *call)
{
	struct scheduler_user *user = user_of(call->peer);

	if (!call->change_accesses)
		return;
	user->n_accesses -= call->change_accesses;
	call->change_accesses = 0;
	gate_fewer(call->rpc, user);
}

static void count(struct call *call, bool shuts)
{
	struct rpc_peer *peer = call->peer;

	call->has_arrived = true;
	call->shuts = shuts;
	peer->n_arrived++;
	peer->n_shut += shuts;
}

void gate_shut(struct call *call)
{
	count(call, true);
}

void gate_let_in(struct call *call)
{
	if (call->state == CALL_HELD)
		DL_DELETE2(call->peer->first_held, call, prev_held, next_held);
	call->state = CALL_QUEUED;
}

void gate_pass(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	peer->n_shut -= call->shuts;
	call->shuts = false;
	forget_change(call);
	if (peer->first_held)
		rpc_wake(call->rpc, peer);
}

static void on_ready(struct scheduler_entry *entry)
{
	call_make_ready((struct call *)entry);
}

static void enter_queues(struct call *call)
{
	call->entry.ready = on_ready;
	call->entry.is_long = call_is_very_long(call->cost) || call_is_searched_for(call);
	call->is_in_scheduler = true;
	/* Its user's allocations that wait for room may hold nobody up from here on. */
	call->rpc->service->waiting.is_due |= call->entry.is_exclusive;
	scheduler_enter(scheduler_of(call), &call->entry, &call->session->user->order, call->claim.accesses,
			call->claim.n);
}

void gate_arrive(struct call *call)
{
	count_change(call);
	count(call, call_row(call)->kind >= METHODS_KIND_TABLE);
	enter_queues(call);
}

/* ---- leaving ---- */

void gate_leave_queues(struct call *call)
{
	if (!call->is_in_scheduler)
		return;
	call->is_in_scheduler = false;
	scheduler_leave(scheduler_of(call), &call->entry);
	gate_fewer(call->rpc, call->entry.user);
	call->rpc->service->waiting.room |= call->entry.is_exclusive;
}

void gate_enter_again(struct call *call)
{
	gate_leave_queues(call);
	call->state = CALL_QUEUED;
	enter_queues(call);
}

void gate_leave(struct call *call)
{
	if (call->state == CALL_READY)
		fair_queue_remove(&call->work);
	gate_let_in(call);
	gate_leave_queues(call);
	if (call->has_arrived) {
		call->has_arrived = false;
		forget_change(call);
		call->peer->n_arrived--;
		call->peer->n_shut -= call->shuts;
	}
}
