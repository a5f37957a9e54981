/* From a call to an entry of the record. Invariant: transfers are owned by one of operate, recording and recorder.
 */
#include "daemon/rpc/calls/recording.h"

#include "daemon/rpc/calls/call.h"
#include "daemon/service/observed/recorder.h"
#include "daemon/service/segments.h"
#include "proto/digest.h"
#include "proto/frame.h"
#include "proto/outline.h"

enum { ANSWER_BYTES_MAX = 128 << 10 };

void recording_op(struct recording *recording, uint64_t digest, struct recorder_transfer *transfer)
{
	recording->digest = digest_number(recording->digest, digest);
	if (!transfer)
		return;
	if (recording->last)
		recording->last->next = transfer;
	else
		recording->first = transfer;
	recording->last = transfer;
}

static const uint8_t *answer_of(const struct call *call, size_t *n)
{
	const uint8_t *frame = call->reply.out->bytes + call->reply.start;
	size_t header = 0;

	*n = 0;
	frame_parse(frame, call->reply.out->used - call->reply.start, FRAME_BYTES_MAX, &header, n);
	return frame + header;
}

/* Digest and handles from the answer. False without memory. */
static bool digest_answer(const struct call *call, struct recorder_entry *entry)
{
	const struct heap *heap = call->rpc->heap;
	ProtobufCAllocator allocator = {heap->alloc, heap->free, heap->ctx};
	size_t n;
	const uint8_t *message = answer_of(call, &n);
	Npumem__V1__Response *response = npumem__v1__response__unpack(&allocator, n, message);

	if (!response)
		return false;
	entry->digest = digest_response(response);
	entry->n_handles = digest_handles(response, entry->handles, TENSORS_ALLOC_MAX);
	npumem__v1__response__free_unpacked(response, &allocator);
	return true;
}

/* What a reader of the record wants to know of it: places, times and counts, and why it was refused. False without
 * memory; entry->answer is the caller's to free. */
static bool outline_answer(const struct call *call, struct recorder_entry *entry)
{
	const struct heap *heap = call->rpc->heap;
	size_t n;
	const uint8_t *message = answer_of(call, &n);

	if (!entry->status && call_row(call)->record < METHODS_RECORD_OUTLINED)
		return true;
	entry->answer_bytes = outline_response(message, n, NULL);
	if (entry->answer_bytes > ANSWER_BYTES_MAX)
		entry->answer_bytes = 0;
	if (!entry->answer_bytes)
		return true;
	entry->answer = heap_alloc(heap, entry->answer_bytes);
	if (entry->answer)
		outline_response(message, n, entry->answer);
	return entry->answer;
}

/* A kept list is recorded by its operations. If the daemon could not build them, nothing ran. */
static bool names_kept_list(const Npumem__V1__Request *request)
{
	return request &&
	       (request->call_case == NPUMEM__V1__REQUEST__CALL_SUBMIT ||
		request->call_case == NPUMEM__V1__REQUEST__CALL_DRY_RUN) &&
	       request->submit->list;
}

/* A request that was done before and is only answered again is not: a replay must not repeat it. */
static bool is_recorded(const struct call *call, int status)
{
	switch (call_row(call)->record) {
	case METHODS_RECORD_NEVER:
		return false;
	case METHODS_RECORD_RETURN:
		return !status && call->request->resume->token.len;
	default:
		return !call->recording.is_done && !call->handle && !names_kept_list(call->request) &&
		       !(status == NPUMEM_ABORTED && !call->is_started && call->request->again);
	}
}

/* A request to come back, without what it came back by: a token is its session's secret. */
static const uint8_t resume_message[] = {0xca, 0x03, 0}; /* Request.resume = {} */

/* A message of which only the beginning came is no request; any other could not be kept. */
static void forget(struct call *call)
{
	struct recording *recording = &call->recording;
	struct recorder *recorder = &call->rpc->service->recorder;

	if (call->request)
		recorder_lose(recorder, "the daemon is out of host memory");
	recorder_free_transfers(recorder, recording->first);
	recording->first = recording->last = NULL;
}

/* Of a kept list: a replay has the operations in the submit itself, as its file may begin behind the keep. */
static bool take_expanded(const struct call *call, struct recorder_entry *entry)
{
	entry->bytes = npumem__v1__request__get_packed_size(call->request);
	entry->request = heap_alloc(call->rpc->heap, entry->bytes);
	if (entry->request)
		npumem__v1__request__pack(call->request, entry->request);
	return entry->request;
}

void recording_end(struct call *call, int status)
{
	struct recording *recording = &call->recording;
	struct recorder *recorder = &call->rpc->service->recorder;
	uint64_t handles[TENSORS_ALLOC_MAX];
	uint8_t *expanded = NULL;
	struct recorder_entry entry;
	bool has_tensors = !status && call_row(call)->record == METHODS_RECORD_TENSORS;

	/* Where recording has ended meanwhile there may be transfers, which recorder_add is rid of. */
	if ((!recorder_is_on(recorder) && !recording->first) || !is_recorded(call, status))
		return;
	if (!call->message) {
		forget(call);
		return;
	}
	entry = (struct recorder_entry){.session = call->session->id,
					.uid = call->session->uid,
					.pid = (uint32_t)call->session->pid,
					.status = status,
					.came_ns = call->start_ns,
					.answered_ns = rpc_clock(call->rpc),
					.digest = recording->digest,
					.handles = handles,
					.bytes = call->bytes,
					.request = (uint8_t *)(uintptr_t)call->message,
					.transfers = recording->first};
	recording->first = recording->last = NULL;
	if (call->list && call->request->call_case == NPUMEM__V1__REQUEST__CALL_SUBMIT) {
		if (take_expanded(call, &entry))
			expanded = entry.request;
		else
			recorder_lose(recorder, "the daemon is out of host memory");
	}
	if (recorder_is_on(recorder) &&
	    ((has_tensors && !digest_answer(call, &entry)) || !outline_answer(call, &entry)))
		recorder_lose(recorder, "the daemon is out of host memory");
	if (recording->shared) {
		entry.segment = recording->shared->id;
		entry.segment_bytes = recording->shared->memory.bytes;
		entry.segment_writable = recording->shared->memory.writable;
	}
	if (call_row(call)->record == METHODS_RECORD_RETURN) {
		entry.request = (uint8_t *)(uintptr_t)resume_message;
		entry.bytes = sizeof(resume_message);
	}
	recorder_add(recorder, &entry);
	heap_free(call->rpc->heap, expanded);
	heap_free(call->rpc->heap, entry.answer);
}

void recording_before_end(struct call *call)
{
	reply_end(&call->reply, call->id, call->error);
	recording_end(call, 0);
	reply_drop(&call->reply);
	call->recording.is_done = true;
}
