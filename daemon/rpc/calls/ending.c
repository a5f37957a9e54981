/* A part of the session's tensors stands in the order of operations like a write of all their bytes. Invariant:
 * peer->drained is called exactly once, when no part is left. */
#include "daemon/rpc/calls/ending.h"

#include <stdlib.h>

#include "daemon/rpc/calls/call.h"
#include "daemon/rpc/handlers/operations/lists.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/service/kept/snapshot.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/service.h"

static void begin_part(struct ending *ending);

void ending_leave(struct rpc *rpc, struct rpc_peer *peer)
{
	gate_forget(rpc, peer);
	repeat_forget(peer);
	lists_deinit(peer);
	peer->drained(peer->ctx);
}

void ending_announce(struct rpc *rpc, struct rpc_peer *peer)
{
	peer->is_closing = true;
	peer->next_to_close = peer->calls;
	if (peer->subscriber)
		events_unsubscribe(rpc->service, peer->subscriber);
	peer->subscriber = NULL;
	rpc_wake(rpc, peer);
}

static void forget(void *arg)
{
	struct ending *ending = arg;

	for (size_t i = 0; i < ending->n; i++)
		device_forget(ending->rpc->service->device, ending->tensors[i]);
}

/* Views first, as a base takes its own along; else in an order that does not depend on the order of arrival: a
 * replay frees what its record did. */
static int by_place(const void *a, const void *b)
{
	const struct tensor *one = *(struct tensor *const *)a, *other = *(struct tensor *const *)b;

	if (!one->base != !other->base)
		return one->base ? -1 : 1;
	if (tensor_address(one) != tensor_address(other))
		return tensor_address(one) < tensor_address(other) ? -1 : 1;
	return one->handle < other->handle ? -1 : one->handle > other->handle;
}

/* In steps: between two of them the peer is queued again, so that others get their turn. */
static void free_part(struct ending *ending)
{
	ending->step = free_part;
	if (!gate_lets_change(ending->rpc, ending->peer))
		return;
	ending->peer->session->request = 0;
	persist_change_for(&ending->rpc->service->persist, ending->peer->session->user);
	if (!tensors_free_step(ending->peer->session, &ending->freeing)) {
		scheduler_pauses(&ending->rpc->service->scheduler, &ending->entry);
		rpc_wake(ending->rpc, ending->peer);
		return;
	}
	ending->step = NULL;
	scheduler_leave(&ending->rpc->service->scheduler, &ending->entry);
	gate_fewer(ending->rpc, ending->entry.user);
	claim_deinit(&ending->claim);
	begin_part(ending);
}

static void begin_to_free(struct ending *ending)
{
	if (ending->n)
		qsort(ending->tensors, ending->n, sizeof(ending->tensors[0]), by_place);
	tensors_free_begin(&ending->freeing, ending->tensors, ending->n);
	free_part(ending);
}

static void on_forgotten(void *arg)
{
	struct ending *ending = arg;
	struct rpc *rpc = ending->rpc;

	begin_to_free(ending);
	rpc->settle(rpc);
}

static void run_part(struct ending *ending)
{
	int64_t cost = 0;

	ending->step = NULL;
	for (size_t i = 0; i < ending->n; i++)
		cost += device_forget_cost(ending->rpc->service->device, ending->tensors[i]);
	if (call_is_very_long(cost))
		scheduler_lasts(&ending->rpc->service->scheduler, &ending->entry);
	/* Between full parts, too, the loop sees to others. */
	if ((call_is_long(cost) || ending->n == ENDING_PART) &&
	    rpc_submit(ending->rpc, ending->peer->session->user, true, forget, on_forgotten, ending))
		return;
	forget(ending);
	begin_to_free(ending);
}

/* Other code calls it while it works: the part goes on in its peer's turn. */
static void on_ready(struct scheduler_entry *entry)
{
	struct ending *ending = (struct ending *)entry;

	ending->step = run_part;
	rpc_wake(ending->rpc, ending->peer);
}

/* The next part, or the end. Without memory to claim it all at once, it is claimed in smaller parts. */
static void begin_part(struct ending *ending)
{
	struct scheduler *scheduler = &ending->rpc->service->scheduler;
	struct session *session = ending->peer->session;

	if (!session->unnamed->first) {
		ending_leave(ending->rpc, ending->peer);
		return;
	}
	claim_init(&ending->claim, ending->rpc->heap);
	ending->n = 0;
	for (unsigned i = 0; session->unnamed->first && i < ENDING_PART; i++) {
		struct tensor *tensor = record_tensor(session->unnamed->first);

		if (service_leaves_session(tensor))
			continue;
		if (claim_tensor(&ending->claim, tensor, CLAIM_FREE))
			break;
		ending->n += session_hide(session, ending->tensors + ending->n, 1);
	}
	ending->entry.ready = on_ready;
	ending->entry.is_long = false;
	scheduler_enter(scheduler, &ending->entry, &session->user->order, ending->claim.accesses, ending->claim.n);
}

void ending_give_up_snapshot(struct rpc *rpc, struct session *session)
{
	if (!snapshot_end(session) ||
	    rpc_submit(rpc, session->user, true, snapshot_give_back, snapshot_gone, rpc->service))
		return;
	snapshot_give_back(rpc->service);
	snapshot_gone(rpc->service);
}

void ending_go_on(struct rpc *rpc, struct rpc_peer *peer)
{
	struct ending *ending = &peer->ending;

	if (!ending->has_begun) {
		/* The stored results of its requests are dropped in this turn. */
		if (peer->session->has_token && !gate_lets_change(rpc, peer))
			return;
		ending->has_begun = true;
		ending->rpc = rpc;
		ending->peer = peer;
		persist_change_for(&rpc->service->persist, peer->session->user);
		/* From here on no client can resume it, even after a crash. */
		session_forget(peer->session);
		begin_part(ending);
	} else if (ending->step) {
		ending->step(ending);
	}
}
