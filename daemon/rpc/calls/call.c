/* A call's beginning, its books and its end. Invariant: a call is in its peer's list from call_new to call_end or
 * call_drop, and in the limits' books from charge_call on; a peer is not told `drained` while it has one. */
#include "daemon/rpc/calls/call.h"

#include <errno.h>
#include <inttypes.h>

#include "daemon/rpc/calls/advance.h"
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/order/line.h"
#include "daemon/rpc/calls/progress.h"
#include "daemon/rpc/resume/unsent.h"
#include "daemon/rpc/decode.h"
#include "daemon/service/kept/results.h"

enum {
	SPARE_MAX = 256,	       /* calls that are kept for others */
	SPARE_REPLY_BYTES = 64 << 10,  /* a larger buffer is not kept with them, */
	SPARE_BUDGET_BYTES = 16 << 10, /* nor more than that to unpack into: whoever has the call is charged */
};

static const struct {
	const char *name;
	enum call_order order;
} rows[] = {
#define METHOD(name, CALL, Message, handler, resolver, order) {#name, CALL_##order},
#include "daemon/rpc/methods.def"
#undef METHOD
	{"none", CALL_AT_ONCE},
};
_Static_assert((int)CALL_METHODS <= (int)METRICS_CALLS_MAX, "a row of metrics for each call");

const char *call_method_name(unsigned method)
{
	return rows[method].name;
}

enum call_order call_order_of(const struct call *call)
{
	return rows[call->method].order;
}

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
	binding_deinit(&call->binding);
	claim_deinit(&call->claim);
	for (unsigned i = 0; call->is_hinted && i < 2; i++)
		claim_deinit(&call->hints[i]);
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
	struct call *call = rpc->spare, *next;

	for (; call; call = next) {
		next = call->next;
		release(rpc, call);
	}
	rpc->spare = NULL;
	rpc->n_spare = 0;
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
	call->method = CALL_METHOD_NONE;
	call->id = 0;
	call->request = NULL;
	call->borrowed = NULL;
	call->owns_message = false;
	call->charge = 0;
	call->cost = 0;
	call->reply_bytes = 0;
	call->entry.is_exclusive = false;
	call->is_committed = call->changes_room = call->holds_others = false;
	call->is_in_scheduler = call->is_in_order = call->is_started = call->is_paused = false;
	call->pending = 0;
	call->keep_result = false;
	call->error = &call->own_error;
	npumem_error_clear(call->error);
	memset(&call->progress, 0, sizeof(call->progress));
	call->is_followed = false;
	call->submission = NULL;
	recording_begin(&call->recording);
	binding_init(&call->binding, call->session, &call->entry);
	claim_init(&call->claim, call->rpc->heap);
	call->which_hint = 0;
	call->is_hinted = false;
	call->known = CALL_UNKNOWN;
	repeat_begin(&call->repeat, call->session);
}

struct call *call_new(struct rpc *rpc, struct rpc_peer *peer, uint8_t *message, size_t bytes)
{
	struct call *call = take(rpc);

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

static unsigned method_of(const Npumem__V1__Request *request)
{
	switch (request->call_case) {
#define METHOD(name, CALL, Message, handler, resolver, order)                                                     \
	case NPUMEM__V1__REQUEST__CALL_##CALL:                                                                    \
		return CALL_METHOD_##CALL;
#include "daemon/rpc/methods.def"
#undef METHOD
	default:
		return CALL_METHOD_NONE;
	}
}

static int refuse_unknown(struct call *call)
{
	const ProtobufCMessage *base = &call->request->base;

	if (base->n_unknown_fields)
		return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED,
					"this daemon does not know call %" PRIu32, base->unknown_fields[0].tag);
	return npumem_error_set(call->error, NPUMEM_UNIMPLEMENTED, "the request has no call");
}

int call_decode(struct call *call)
{
	int status = decode_request(&call->budget, call->message, call->bytes, &call->request, &call->borrowed,
				    call->error);

	if (status) {
		call->id = decode_salvage_id(call->message, call->bytes);
		return status;
	}
	call->method = method_of(call->request);
	call->id = call->request->id;
	if (!call->id)
		return npumem_error_set(call->error, NPUMEM_INVALID, "request id 0: ids are above 0");
	if (call->request->answered_below) {
		results_answered(call->session, call->request->answered_below);
		unsent_answered(call->peer, call->request->answered_below);
	}
	return call->method == CALL_METHOD_NONE ? refuse_unknown(call) : 0;
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

	metrics_count(&session->service->metrics, &session->user->usage, &session->usage, &event);
	if (call->rpc->answered)
		call->rpc->answered(&(struct rpc_answer){.session = session,
							 .call = call_method_name(call->method),
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

	line_leave(call);
	advance_leave(call);
	progress_forget(call);
	charge_give_back(call);
	unlink_call(call);
	give(rpc, call);
	if (peer->first_held || peer->is_closing)
		advance_loosen(rpc, peer);
}

void call_end(struct call *call, int status)
{
	struct rpc_peer *peer = call->peer;

	answer(call, status);
	/* An operation has read the clock when it ended. */
	if (!call_is_single(call))
		rpc_clock_passed(call->rpc);
	unsent_note(peer, call->id);
	if (!peer->is_closing)
		peer->deliver(peer->ctx, &call->out);
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

/* Whether a request that came later has it already. A view's users are those that found it, a root's those of its
 * views, too, and who found it and has not claimed it for good yet (advance.c, look_again). */
static bool is_used_later(const struct call *call, const struct tensor *tensor)
{
	if (record_of(tensor)->bound > call->entry.arrival)
		return true;
	return !tensor->base && scheduler_is_used_later(&record_of(tensor)->queue, &call->entry);
}

/* Whoever may use it and came before must find it, too. */
int call_claim_free(struct call *call, struct tensor *tensor)
{
	if (scheduler_may_be_used(&record_of(tensor_root(tensor))->queue, &call->entry))
		return BINDING_BLOCKED;
	if (is_used_later(call, tensor))
		return BINDING_LATE;
	return claim_free(&call->claim, tensor) ? heap_exhausted(call->error) : 0;
}

int call_claim_op(struct call *call, const struct op *op)
{
	if (__builtin_add_overflow(call->cost, op_cost(call->rpc->service->device, op), &call->cost) ||
	    __builtin_add_overflow(call->cost, CALL_OP_COST, &call->cost))
		call->cost = INT64_MAX;
	call->reply_bytes += operate_payload_bytes(op);
	repeat_look(&call->repeat, op);
	/* Its answer may get lost between two hosts, when what it did has been worked on since. */
	if (call_is_single(call) && call->session->lingers && op->kind != OP_READ)
		repeat_never(&call->repeat);
	return claim_op(&call->claim, op) ? heap_exhausted(call->error) : 0;
}

int call_later(struct call *call, int64_t cost, void (*work)(void *arg),
	       int (*finish)(struct call *call, void *arg), void *arg)
{
	call->step = (struct call_step){work, finish, arg, call_is_long(cost)};
	return CALL_LATER;
}

int call_pause(struct call *call, int (*finish)(struct call *call, void *arg), void *arg)
{
	call->step = (struct call_step){NULL, finish, arg, false};
	return CALL_LATER;
}

bool call_is_cancelled(const struct call *call)
{
	return call->peer->is_closing || atomic_load(&call->progress.cancelled);
}

bool call_submit_work(const struct call *call, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	const struct executor *executor = &call->rpc->executor;

	return call_outlives_message(call) && executor->submit &&
	       !executor->submit(executor->ctx, call->session->uid, work, done, arg);
}
