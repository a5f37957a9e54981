/* A call's beginning, its books and its end. Invariant: a call is in its peer's list from life_new to life_end or
 * life_drop, and in the limits' books from charge_call on; a peer is not `drained` while it has one. */
#include "daemon/rpc/calls/life.h"

#include <assert.h>
#include <stddef.h>
#include <utlist.h>

#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/recording.h"
#include "daemon/rpc/handlers/operations/lists.h"
#include "daemon/rpc/order/gate.h"
#include "daemon/service/observed/events.h"
#include "proto/digest.h"

enum {
	SPARE_MAX = 256,	       /* calls that are kept for others */
	SPARE_REPLY_BYTES = 64 << 10,  /* a larger buffer is not kept with them, */
	SPARE_BUDGET_BYTES = 16 << 10, /* nor more than that to unpack into: the peer of the call is charged */
};

_Static_assert((int)METHODS_N <= (int)METRICS_CALLS_MAX, "a row of metrics for each call");

/* ---- the pool ---- */

static struct call *take(struct rpc *rpc)
{
	struct call *call = rpc->spare;

	if (call) {
		rpc->spare = call->next;
		rpc->n_spare--;
		return call;
	}
	call = heap_alloc(rpc->heap, sizeof(*call));
	if (!call)
		return NULL;
	budget_init(&call->budget, rpc->heap->alloc, rpc->heap->free, rpc->heap->ctx);
	buffer_init(&call->out, rpc->heap);
	return call;
}

int life_keep_error(struct call *call)
{
	if (call->error != &call->rpc->error)
		return 0;
	call->kept_error = heap_alloc(call->rpc->heap, sizeof(*call->kept_error));
	if (!call->kept_error)
		return heap_exhausted(call->error);
	*call->kept_error = *call->error;
	npumem_error_clear(call->error);
	call->error = call->kept_error;
	call->extra_bytes += sizeof(*call->kept_error);
	return 0;
}

static void release(struct rpc *rpc, struct call *call)
{
	budget_deinit(&call->budget);
	buffer_deinit(&call->out);
	heap_free(rpc->heap, call);
}

static void give(struct rpc *rpc, struct call *call)
{
	if (call->owns_message)
		heap_free(rpc->heap, call->message);
	if (rpc->arriving == call)
		rpc->arriving = NULL;
	lists_release(call->list);
	binding_deinit(&call->binding);
	claim_deinit(&call->claim);
	if (call->release)
		call->release(call);
	heap_free(rpc->heap, call->page);
	heap_free(rpc->heap, call->kept_error);
	npumem_error_clear(&rpc->error);
	if (rpc->n_spare >= SPARE_MAX) {
		release(rpc, call);
		return;
	}
	if (call->out.room > SPARE_REPLY_BYTES)
		buffer_deinit(&call->out);
	call->out.used = 0;
	budget_reset(&call->budget, 0);
	if (call->budget.held > SPARE_BUDGET_BYTES)
		budget_deinit(&call->budget);
	call->next = rpc->spare;
	rpc->spare = call;
	rpc->n_spare++;
}

void life_pool_deinit(struct rpc *rpc)
{
	struct call *call;

	while ((call = rpc->spare)) {
		rpc->spare = call->next;
		release(rpc, call);
	}
	rpc->n_spare = 0;
}

/* ---- the beginning ---- */

struct call *life_new(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes)
{
	struct call *call = take(rpc);

	assert(!rpc->error.status);
	if (!call)
		return NULL;
	memset(call, 0, offsetof(struct call, budget));
	call->rpc = rpc;
	call->peer = peer;
	call->session = peer->session;
	call->session->peer = peer;
	call->state = CALL_QUEUED;
	call->method = METHODS_NONE;
	call->message = message;
	call->bytes = bytes;
	call->n_changed = 1;
	call->error = &rpc->error;
	call->start_ns = rpc_clock(rpc);
	call->recording.digest = digest_begin();
	binding_init(&call->binding, call->session);
	claim_init(&call->claim, rpc->heap);
	repeat_begin(&call->repeat, call->session);
	if (reply_begin(&call->reply, &call->out)) {
		give(rpc, call);
		return NULL;
	}
	DL_PREPEND(peer->calls, call);
	peer->n_calls++;
	return call;
}

/* ---- the end ---- */

static void count(const struct call *call)
{
	struct session *session = call->session;
	struct metrics_event event = {.call = call->method,
				      .status = call->error->status,
				      .bytes_in = call->bytes,
				      .bytes_out = call->reply.out->used - call->reply.start,
				      .ns = rpc_clock(call->rpc) - call->start_ns};

	metrics_count(&session->service->metrics, &session->user->account, &session->usage, &event);
	if (call->rpc->answered)
		call->rpc->answered(&(struct rpc_answer){.session = session,
							 .call = call_row(call)->name,
							 .status = event.status,
							 .message = event.status ? call->error->message : "",
							 .bytes_in = event.bytes_in,
							 .bytes_out = event.bytes_out,
							 .ns = event.ns});
}

static void answer(struct call *call, int status)
{
	if (status && !call->error->status)
		npumem_error_set(call->error, NPUMEM_INTERNAL, "a refusal without a reason");
	if (status && !call->keep_result)
		reply_drop(&call->reply);
	if (!status)
		npumem_error_clear(call->error);
	reply_end(&call->reply, call->id, call->error);
	/* As it was answered: of ASCII alone, which others' programs and terminals can have. */
	if (status)
		events_refused(call->session, call->id, call->error);
	count(call);
	recording_end(call, call->error->status);
}

static void leave_line(struct call *call)
{
	if (call->state == CALL_IN_LINE || call_is_searched_for(call))
		waiting_remove(&call->rpc->service->waiting, &call->waiter);
}

static void unfollow(struct call *call)
{
	if (!call->is_followed)
		return;
	call->is_followed = false;
	DL_DELETE2(call->rpc->followed, call, prev_followed, next_followed);
}

static void unlink_call(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (peer->next_to_close == call)
		peer->next_to_close = call->next;
	DL_DELETE(peer->calls, call);
	peer->n_calls--;
}

void life_drop(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct rpc_peer *peer = call->peer;

	runs_off_loop(rpc->service);
	leave_line(call);
	gate_leave(call);
	unfollow(call);
	charge_give_back(call);
	unlink_call(call);
	give(rpc, call);
	if (peer->first_held || peer->is_closing)
		rpc_wake(rpc, peer);
}

void life_end(struct call *call, int status)
{
	struct rpc_peer *peer = call->peer;

	answer(call, status);
	/* An operation has read the clock when it ended. */
	if (!call_is_single(call))
		rpc_clock_passed(call->rpc);
	repeat_note_answer(peer, call->id);
	peer->is_stateless = call_row(call)->kind == METHODS_KIND_STATELESS;
	if (!peer->is_closing)
		peer->deliver(peer->ctx, &call->out);
	peer->is_stateless = false;
	life_drop(call);
}
