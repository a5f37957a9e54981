/* A compaction: some moves are decided and made at a time, so that the loop sees to others in between. Invariant:
 * at the end of each step all tensors are whole, so that it may end there. */
#include "daemon/rpc/handlers/handler.h"
#include "proto/frame.h"

enum {
	MOVE_BYTES = ERROR_CONTEXT_NAME_BYTES + 64, /* a bound for one Move */
	COMPACTED_MOVES = 1,			    /* Compacted.moves */
	STEP_MOVES = DEVICE_MOVES_MAX,
};

struct compacting {
	struct call *call;
	bool dry_run;
	struct device_compaction at;
	struct device_move moves[STEP_MOVES];
	unsigned n;
	bool moved;	/* something has */
	bool is_full;	/* no more moves are told */
	int64_t before; /* the largest free extent */
	size_t mark;
};

static int step(struct compacting *compacting);

static int64_t largest_free(const struct call *call)
{
	int64_t free_bytes, largest;

	device_room(call->rpc->service->device, &free_bytes, &largest);
	return largest;
}

/* Where another uid's tensors lie is not told. */
static bool is_told(const struct session *session, const struct tensor *tensor)
{
	return access_sees(session, tensor) || record_of(tensor)->uid == session->uid;
}

static void append_move(struct compacting *compacting, const struct device_move *move)
{
	struct call *call = compacting->call;
	int64_t npu_bytes = device_options(call->rpc->service->device)->geometry.npu_bytes;
	int64_t npu_from = move->tensor->place.start_npu * npu_bytes;
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

/* Beyond the frame cap, or without memory, the list of moves is cut: what has moved has moved. */
static void tell(struct compacting *compacting)
{
	struct call *call = compacting->call;
	size_t bytes = compacting->n * MOVE_BYTES + 4 * REPLY_TAG_BYTES;

	if (!compacting->is_full)
		compacting->is_full = reply_used(&call->reply) + bytes + 2 * REPLY_REST_BYTES > FRAME_BYTES_MAX ||
				      reply_make_room(&call->reply, bytes, NULL);
	for (unsigned i = 0; i < compacting->n && !compacting->is_full; i++)
		if (is_told(call->session, compacting->moves[i].tensor))
			append_move(compacting, &compacting->moves[i]);
	for (unsigned i = 0; i < compacting->n && !compacting->dry_run; i++)
		events_tensor(call->rpc->service, EVENTS_MOVED, compacting->moves[i].tensor, call->session, -1);
}

static int end(struct compacting *compacting, int status)
{
	struct call *call = compacting->call;
	Npumem__V1__Compacted message = NPUMEM__V1__COMPACTED__INIT;

	call->rpc->service->waiting.room |= !compacting->dry_run;
	message.largest_free_before = compacting->before;
	message.largest_free_after = largest_free(call);
	reply_fields(&call->reply, &message.base);
	reply_close(&call->reply, compacting->mark, STEP_MOVES * MOVE_BYTES);
	heap_free(call->rpc->heap, compacting);
	return status;
}

static void move_bytes(void *arg)
{
	struct compacting *compacting = arg;

	device_compact_bytes(compacting->call->rpc->service->device);
}

static int on_moved(struct call *call, void *arg)
{
	struct compacting *compacting = arg;

	if (!compacting->dry_run)
		tell(compacting);
	if (compacting->at.done)
		return end(compacting, 0);
	if (!call_is_cancelled(call))
		return step(compacting);
	call->keep_result = true;
	return end(compacting, npumem_error_set(call->error, NPUMEM_CANCELLED,
						"the compaction was cancelled; what is told of has moved"));
}

/* The new places are committed before a byte moves: how far the bytes are, the device itself can tell. */
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
		persist_moved(service, compacting->moves, compacting->n);
	return 0;
}

static int step(struct compacting *compacting)
{
	struct call *call = compacting->call;
	int status = step_decide(compacting);

	if (status && !compacting->moved)
		return end(compacting, status);
	/* Without memory or room for more it has come as far as it can. */
	if (status) {
		npumem_error_clear(call->error);
		return end(compacting, 0);
	}
	compacting->moved |= compacting->n && !compacting->dry_run;
	/* Nothing else holds back a dry run, so what it found is told before others change it. */
	if (compacting->dry_run) {
		tell(compacting);
		return call_pause(call, on_moved, compacting);
	}
	/* Elsewhere even where there is nothing to move, as the step itself took its time. */
	return call_later(call, INT64_MAX, move_bytes, on_moved, compacting);
}

/* A real one has the device for itself; a dry one looks at it a part at a time, as others change it. */
int resolve_compact(struct call *call, const Npumem__V1__CompactRequest *request)
{
	call->entry.is_exclusive = !request->dry_run;
	return 0;
}

int handle_compact(struct call *call, const Npumem__V1__CompactRequest *request)
{
	struct compacting *compacting;
	int status;

	compacting = heap_zalloc(call->rpc->heap, 1, sizeof(*compacting));
	if (!compacting)
		return heap_exhausted(call->error);
	compacting->call = call;
	compacting->dry_run = request->dry_run;
	compacting->before = largest_free(call);
	status = reply_reserve(&call->reply, 8 * REPLY_TAG_BYTES, call->error);
	if (status) {
		heap_free(call->rpc->heap, compacting);
		return status;
	}
	compacting->mark =
		reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_COMPACTED, STEP_MOVES * MOVE_BYTES);
	return step(compacting);
}
