/* A call's beginning, its books and its end. Invariant: a call is in its peer's list from call_new to call_end or
 * call_drop, and in the limits' books from charge_call on; a peer is not told `drained` while it has one. */
#include "daemon/rpc/calls/call.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/handlers/progress.h"
#include "daemon/rpc/resume/repeat.h"
#include "daemon/rpc/decode.h"
#include "daemon/rpc/handlers/lists.h"
#include "daemon/rpc/handlers/operate.h"
#include "daemon/service/kept/results.h"

enum {
	SPARE_MAX = 256,	       /* calls that are kept for others */
	SPARE_REPLY_BYTES = 64 << 10,  /* a larger buffer is not kept with them, */
	SPARE_BUDGET_BYTES = 16 << 10, /* nor more than that to unpack into: whoever has the call is charged */
};

_Static_assert((int)METHODS_N <= (int)METRICS_CALLS_MAX, "a row of metrics for each call");

/* ---- the pool ---- */

static void *budget_take(void *ctx, size_t bytes)
{
	return heap_alloc(ctx, bytes);
}

static void budget_give(void *ctx, void *memory)
{
	heap_free(ctx, memory);
}

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
	budget_init(&call->budget, budget_take, budget_give, (void *)rpc->heap);
	buffer_init(&call->out, rpc->heap);
	return call;
}

static void give_operate(struct rpc *rpc, struct operate *operate)
{
	if (!operate)
		return;
	if (rpc->n_spare_operations >= SPARE_MAX) {
		heap_free(rpc->heap, operate);
		return;
	}
	operate->next = rpc->spare_operations;
	rpc->spare_operations = operate;
	rpc->n_spare_operations++;
}

int call_begin_operate(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct operate *operate = rpc->spare_operations;

	if (operate) {
		rpc->spare_operations = operate->next;
		rpc->n_spare_operations--;
	} else {
		operate = heap_alloc(rpc->heap, sizeof(*operate));
		if (!operate)
			return heap_exhausted(call->error);
	}
	operate_init(operate, call);
	call->operate = operate;
	call->error = &operate->error;
	return 0;
}

int call_keep_error(struct call *call)
{
	if (call->error != &call->rpc->error)
		return 0;
	call->kept_error = heap_alloc(call->rpc->heap, sizeof(*call->kept_error));
	if (!call->kept_error)
		return heap_exhausted(call->error);
	*call->kept_error = *call->error;
	npumem_error_clear(call->error);
	call->error = call->kept_error;
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
	give_operate(rpc, call->operate);
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

void call_pool_deinit(struct rpc *rpc)
{
	struct operate *operate;
	struct call *call;

	while ((call = rpc->spare)) {
		rpc->spare = call->next;
		release(rpc, call);
	}
	while ((operate = rpc->spare_operations)) {
		rpc->spare_operations = operate->next;
		heap_free(rpc->heap, operate);
	}
	rpc->n_spare = rpc->n_spare_operations = 0;
}

/* ---- the beginning ---- */

static void enlist(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	call->prev = NULL;
	call->next = peer->calls;
	if (call->next)
		call->next->prev = call;
	peer->calls = call;
	peer->n_calls++;
}

/* Field by field, as most of it is only used by those who set it. */
static void init(struct call *call)
{
	call->state = CALL_HELD;
	call->method = METHODS_NONE;
	call->id = 0;
	call->request = NULL;
	call->borrowed = NULL;
	call->list = NULL;
	call->owns_message = false;
	call->charge = 0;
	call->cost = 0;
	call->n_resolved = 0;
	call->reply_bytes = 0;
	call->entry.is_exclusive = call->entry.gives_way = call->entry.is_long = false;
	call->is_committed = call->is_held = call->is_in_scheduler = call->has_arrived = call->shuts = false;
	call->is_started = call->is_paused = call->is_refused = false;
	call->pending = 0;
	call->keep_result = false;
	call->operate = NULL;
	call->error = &call->rpc->error;
	call->kept_error = NULL;
	memset(&call->progress, 0, sizeof(call->progress));
	call->is_followed = false;
	call->submission = NULL;
	call->withdraw = NULL;
	call->run_bytes = 0;
	recording_begin(&call->recording);
	binding_init(&call->binding, call->session);
	claim_init(&call->claim, call->rpc->heap);
	call->known = CALL_UNKNOWN;
	repeat_begin(&call->repeat, call->session);
}

struct call *call_new(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes)
{
	struct call *call = take(rpc);

	assert(!rpc->error.status);
	if (!call)
		return NULL;
	call->rpc = rpc;
	call->peer = peer;
	call->session = peer->session;
	call->session->peer = peer;
	call->message = message;
	call->bytes = bytes;
	call->start_ns = rpc_clock(rpc);
	init(call);
	if (reply_begin(&call->reply, &call->out)) {
		give(rpc, call);
		return NULL;
	}
	enlist(call);
	return call;
}

static int refuse_unknown(struct call *call, uint32_t unknown)
{
	if (unknown)
		return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED,
					"this daemon does not know call %" PRIu32, unknown);
	return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED, "the request has no call");
}

int call_decode(struct call *call)
{
	uint32_t unknown;
	int status = decode_request(&call->budget, call->message, call->bytes, &call->request, &call->borrowed,
				    &unknown, call->error);

	if (status) {
		call->id = decode_salvage_id(call->message, call->bytes);
		return status;
	}
	call->method = methods_number(call->request->call_case);
	call->id = call->request->id;
	if (!call->id)
		return npumem_error_set(call->error, NPUMEM_INVALID, "request id 0: ids are above 0");
	if (call->request->answered_below) {
		results_answered(call->session, call->request->answered_below);
		repeat_answered(call->peer, call->request->answered_below);
	}
	if ((call->method == METHODS_SUBMIT || call->method == METHODS_DRY_RUN) &&
	    (call->request->submit->list || call->request->submit->n_changes))
		return lists_expand(call);
	return call->method == METHODS_NONE ? refuse_unknown(call, unknown) : 0;
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
	else
		events_refused(call->session, call->id, call->error);
	reply_end(&call->reply, call->id, call->error);
	count(call);
	recording_end(call, call->error->status);
}

static void unlink_call(struct call *call)
{
	struct rpc_peer *peer = call->peer;

	if (peer->next_to_close == call)
		peer->next_to_close = call->next;
	if (call->prev)
		call->prev->next = call->next;
	else
		peer->calls = call->next;
	if (call->next)
		call->next->prev = call->prev;
	peer->n_calls--;
}

void call_drop(struct call *call)
{
	struct rpc *rpc = call->rpc;
	struct rpc_peer *peer = call->peer;

	runs_off_loop(rpc->service);
	line_leave(call);
	advance_leave(call);
	progress_forget(call);
	charge_give_back(call);
	unlink_call(call);
	give(rpc, call);
	if (peer->first_held || peer->is_closing)
		advance_make_runnable(rpc, peer);
}

void call_end(struct call *call, int status)
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
	call_drop(call);
}

struct call *call_find(const struct rpc_peer *peer, uint64_t id)
{
	struct call *call = peer->calls;

	while (call && call->id != id)
		call = call->next;
	return call;
}

/* ---- for resolvers and handlers ---- */

int call_claim(struct call *call, struct tensor *tensor, bool writes)
{
	return claim_tensor(&call->claim, tensor, writes) ? heap_exhausted(call->error) : 0;
}

int call_claim_free(struct call *call, struct tensor *tensor)
{
	return claim_free(&call->claim, tensor) ? heap_exhausted(call->error) : 0;
}

int call_claim_look(struct call *call, struct tensor *tensor)
{
	return claim_look(&call->claim, tensor) ? heap_exhausted(call->error) : 0;
}

int call_claim_name(struct call *call, uint32_t uid, const char *name)
{
	const struct record *record = names_find(&call->session->service->names, uid, name);

	return record && record_is_going(record) ? call_claim(call, tensor_root(record_tensor(record)), true) : 0;
}

int64_t call_op_cost(const struct call *call, const struct op *op)
{
	int64_t cost = op_cost(call->rpc->service->device, op);

	return op->system.segment && !call_is_long(cost) ? CALL_INLINE_COST + 1 : cost;
}

int call_claim_op(struct call *call, const struct op *op)
{
	/* How much longer than very long it is, nobody asks. */
	if (!call_is_very_long(call->cost) &&
	    (__builtin_add_overflow(call->cost, call_op_cost(call, op), &call->cost) ||
	     __builtin_add_overflow(call->cost, CALL_OP_COST, &call->cost)))
		call->cost = INT64_MAX;
	/* It gets its place in the order, so that it may be left to a thread. */
	if (op->kind != OP_READ && persist_is_backlogged(&call->session->service->persist))
		call->cost = INT64_MAX;
	call->reply_bytes += operate_payload_bytes(op);
	repeat_add(&call->repeat, op);
	/* Its answer may get lost between two hosts, when what it did has been worked on since. */
	if (call_is_single(call) && call->session->lingers && op->kind != OP_READ)
		repeat_never(&call->repeat);
	return claim_op(&call->claim, op) ? heap_exhausted(call->error) : 0;
}

bool call_is_cancelled(const struct call *call)
{
	return call->peer->is_closing || atomic_load(&call->progress.cancelled);
}
