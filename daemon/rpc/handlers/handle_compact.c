/* A compaction: some moves are decided and made at a time, so that the loop sees to others in between. Invariant:
 * at the end of each step all tensors are whole, so that it may end there. No other requests run during a
 * step; others run after each TURN_NS. One that is bounded (stops.h) leaves tensors in place that would take too
 * long at once. */
#include "daemon/rpc/calls/charge.h"
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/service/observed/events.h"
#include "daemon/service/order/stops.h"

enum {
	MOVE_BYTES = ERROR_CONTEXT_NAME_BYTES + 64, /* a bound for one Move */
	COMPACTED_MOVES = 1,			    /* Compacted.moves */
	LISTED_BYTES = 1 << 20,			    /* of moves in the answer: the client may never read it */
	STEP_MOVES = DEVICE_MOVES_MAX,
	STEP_BYTES = 8 << 20,
	TURN_VIEWS = 4096,	 /* that get their new places in one turn of the loop */
	MOST_BYTES = 32 << 20,	 /* of one tensor */
	DURABLE_BYTES = 1 << 20, /* of either, where the disk has to have all that moves: mostly twice */
	TURN_NS = 3000000,
};

struct compacting {
	struct call *call;
	bool dry_run;
	struct device_compaction at;
	struct device_move moves[STEP_MOVES];
	unsigned n;
	bool moved;	/* something has */
	bool is_full;	/* no more moves are listed */
	int64_t before; /* the largest free extent */
	size_t mark;
	uint64_t turn_ns, step_ns; /* when the others were stopped, and when this step began */
	uint64_t charged_ns;
};

static int step(struct compacting *compacting);

static int64_t largest_free(const struct call *call)
{
	int64_t free_bytes, largest;

	device_room(call->rpc->service->device, &free_bytes, &largest);
	return largest;
}

/* Where another uid's tensors lie is not disclosed. */
static bool is_listed(const struct session *session, const struct tensor *tensor)
{
	return access_sees(session, tensor) || record_of(tensor)->uid == session->uid;
}

static void append_move(struct compacting *compacting, const struct device_move *move)
{
	struct call *call = compacting->call;
	int64_t npu_bytes = device_options(call->rpc->service->device)->geometry.npu_bytes;
	int64_t npu_from = tensor_start_npu(move->tensor) * npu_bytes;
	Npumem__V1__Move message = NPUMEM__V1__MOVE__INIT;
	char name[ERROR_CONTEXT_NAME_BYTES];

	access_name(call->session, move->tensor, name, sizeof(name));
	message.handle = access_sees(call->session, move->tensor) ? move->tensor->handle : 0;
	message.name = name;
	message.from_address = npu_from + move->from_offset;
	message.to_address = npu_from + move->to_offset;
	message.bytes_per_npu = move->bytes_per_npu;
	reply_message(&call->reply, COMPACTED_MOVES, &message.base);
}

/* Without room for more, in the answer, in the user's books or in host memory, the list of moves is cut: what has
 * moved has moved. */
static bool has_room(struct call *call, size_t bytes)
{
	size_t total = reply_used(&call->reply) + bytes;

	if (total > LISTED_BYTES)
		return false;
	call->reply_bytes = total;
	if (!charge_call(call) && !reply_make_room(&call->reply, bytes, NULL))
		return true;
	npumem_error_clear(call->error);
	return false;
}

static void append_moves(struct compacting *compacting)
{
	struct call *call = compacting->call;
	size_t bytes = compacting->n * MOVE_BYTES + 4 * REPLY_TAG_BYTES;

	if (!compacting->is_full)
		compacting->is_full = !has_room(call, bytes);
	for (unsigned i = 0; i < compacting->n && !compacting->is_full; i++)
		if (is_listed(call->session, compacting->moves[i].tensor))
			append_move(compacting, &compacting->moves[i]);
	for (unsigned i = 0; i < compacting->n && !compacting->dry_run; i++)
		events_tensor(call->rpc->service, EVENTS_MOVED, compacting->moves[i].tensor, call->session, -1);
}

static uint64_t now_ns(const struct compacting *compacting)
{
	const struct service *service = compacting->call->rpc->service;

	return service->events.now_ns ? service->events.now_ns() : 0;
}

static void charge(struct compacting *compacting, uint64_t ns)
{
	if (!compacting->dry_run)
		stops_charge(compacting->call->session, STOPS_COMPACTIONS, ns);
	compacting->charged_ns += ns;
}

static int end(struct compacting *compacting, int status)
{
	struct call *call = compacting->call;
	Npumem__V1__Compacted message = NPUMEM__V1__COMPACTED__INIT;

	if (compacting->charged_ns < STOPS_LEAST_NS)
		charge(compacting, STOPS_LEAST_NS - compacting->charged_ns);
	message.largest_free_before = compacting->before;
	message.largest_free_after = largest_free(call);
	message.cut = compacting->is_full;
	reply_fields(&call->reply, &message.base);
	reply_close(&call->reply, compacting->mark, STEP_MOVES * MOVE_BYTES);
	heap_free(call->rpc->heap, compacting);
	return status;
}

static void move_bytes(struct call *call)
{
	device_compact_bytes(call->rpc->service->device);
}

static int cancel(struct compacting *compacting)
{
	struct call *call = compacting->call;

	call->keep_result = true;
	return end(compacting,
		   npumem_error_set(call->error, NPUMEM_CANCELLED,
				    "the compaction was cancelled; the tensors in the answer have moved"));
}

static int resume(struct call *call)
{
	struct compacting *compacting = call->task;

	if (call_is_cancelled(call))
		return cancel(compacting);
	device_compact_resume(&compacting->at);
	compacting->turn_ns = now_ns(compacting);
	return step(compacting);
}

static int on_moved(struct call *call)
{
	struct compacting *compacting = call->task;
	uint64_t now = now_ns(compacting);

	charge(compacting, now - compacting->step_ns);
	if (!compacting->dry_run)
		append_moves(compacting);
	if (compacting->at.done)
		return end(compacting, 0);
	if (call_is_cancelled(call))
		return cancel(compacting);
	if (compacting->dry_run || now - compacting->turn_ns < TURN_NS)
		return step(compacting);
	return perform_go_behind(call, resume);
}

/* No other requests run meanwhile, but the loop serves those that need no tensor. */
static int move_views(struct call *call)
{
	struct compacting *compacting = call->task;

	if (!device_compact_views(call->rpc->service->device, &compacting->at, compacting->moves, compacting->n,
				  TURN_VIEWS))
		return perform_pause(call, move_views);
	/* Elsewhere even where there is nothing to move, as the step itself took its time. */
	return perform_later(call, INT64_MAX, move_bytes, on_moved);
}

/* The new places are committed before a byte moves: how far the bytes are, the device itself knows. */
static int step_decide(struct compacting *compacting)
{
	struct call *call = compacting->call;
	struct service *service = call->rpc->service;
	uint32_t n_changes = compacting->dry_run ? 0 : STEP_MOVES;
	int status = persist_prepare(service, STORE_TENSORS, PERSIST_NO_CELL, n_changes, call->error);

	if (status)
		return status;
	if (device_compact_step(service->device, &compacting->at, compacting->dry_run, compacting->moves,
				STEP_MOVES, &compacting->n))
		return heap_exhausted(call->error);
	if (!compacting->dry_run)
		tensors_moved(service, compacting->moves, compacting->n);
	return 0;
}

static int step(struct compacting *compacting)
{
	struct call *call = compacting->call;
	int status;

	compacting->step_ns = now_ns(compacting);
	status = step_decide(compacting);

	if (status && !compacting->moved)
		return end(compacting, status);
	/* Without memory or room for more it has come as far as it can. */
	if (status) {
		npumem_error_clear(call->error);
		return end(compacting, 0);
	}
	compacting->moved |= compacting->n && !compacting->dry_run;
	/* Nothing else holds back a dry run, so what it found is listed before others change it. */
	if (compacting->dry_run) {
		append_moves(compacting);
		return perform_pause(call, on_moved);
	}
	return move_views(call);
}

/* A real one has the device for itself; a dry one reads it a part at a time, while others change it. */
int resolve_compact(struct call *call)
{
	if (call->request->compact->dry_run)
		return 0;
	call->entry.is_exclusive = true;
	return stops_check(call->session, STOPS_COMPACTIONS, call->error);
}

static void begin(struct call *call, bool dry_run, struct compacting *compacting)
{
	bool is_durable = persist_is_durable(&call->rpc->service->persist);

	call->task = compacting;
	compacting->call = call;
	compacting->dry_run = dry_run;
	compacting->turn_ns = now_ns(compacting);
	compacting->at.step_bytes = is_durable ? DURABLE_BYTES : STEP_BYTES;
	if (stops_is_bounded(call->session))
		compacting->at.most_bytes = is_durable ? DURABLE_BYTES : MOST_BYTES;
	compacting->before = largest_free(call);
}

int handle_compact(struct call *call)
{
	const Npumem__V1__CompactRequest *request = call->request->compact;
	struct compacting *compacting;
	int status;

	/* Others of the user's may have been charged since this one arrived. */
	status = request->dry_run ? 0 : stops_check(call->session, STOPS_COMPACTIONS, call->error);
	if (status)
		return status;
	compacting = heap_zalloc(call->rpc->heap, 1, sizeof(*compacting));
	if (!compacting)
		return heap_exhausted(call->error);
	begin(call, request->dry_run, compacting);
	status = reply_reserve(&call->reply, 8 * REPLY_TAG_BYTES, call->error);
	if (status) {
		heap_free(call->rpc->heap, compacting);
		return status;
	}
	compacting->mark =
		reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_COMPACTED, STEP_MOVES * MOVE_BYTES);
	return step(compacting);
}
