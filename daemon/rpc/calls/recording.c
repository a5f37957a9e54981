/* From a call to an entry of the record. Invariant: transfers are owned by one of operate, recording and recorder.
 */
#include "daemon/rpc/calls/recording.h"

#include "daemon/rpc/calls/call.h"
#include "daemon/service/segments.h"
#include "daemon/service/transfer.h"
#include "proto/digest.h"
#include "proto/frame.h"

void recording_begin(struct recording *recording)
{
	*recording = (struct recording){.digest = digest_begin()};
}

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

static void *response_alloc(void *ctx, size_t bytes)
{
	return heap_alloc(ctx, bytes);
}

static void response_free(void *ctx, void *memory)
{
	heap_free(ctx, memory);
}

/* Whether the digest is of the tensors in the answer; such answers are short. */
static bool is_about_tensors(const struct call *call)
{
	switch (call->method) {
	case CALL_METHOD_ALLOC:
	case CALL_METHOD_VIEW:
	case CALL_METHOD_FREE:
	case CALL_METHOD_OPEN:
	case CALL_METHOD_SEAL:
	case CALL_METHOD_GRANT:
		return true;
	default:
		return false;
	}
}

/* Digest and handles from the answer's own bytes. False without memory. */
static bool look_at_answer(const struct call *call, struct recorder_entry *entry)
{
	ProtobufCAllocator allocator = {response_alloc, response_free, (void *)call->rpc->heap};
	const uint8_t *frame = call->reply.out->bytes + call->reply.start;
	size_t header = 0, message = 0;
	Npumem__V1__Response *response;

	frame_parse(frame, call->reply.out->used - call->reply.start, FRAME_BYTES_MAX, &header, &message);
	response = npumem__v1__response__unpack(&allocator, message, frame + header);
	if (!response)
		return false;
	entry->digest = digest_response(response);
	entry->n_handles = digest_handles(response, entry->handles, TENSORS_ALLOC_MAX);
	npumem__v1__response__free_unpacked(response, &allocator);
	return true;
}

void recording_end(struct call *call, int status)
{
	struct recording *recording = &call->recording;
	struct recorder *recorder = &call->rpc->service->recorder;
	uint64_t handles[TENSORS_ALLOC_MAX];
	struct recorder_entry entry;

	/* Where recording has ended meanwhile there may be transfers, which recorder_add is rid of. */
	if ((!recorder_is_on(recorder) && !recording->first) || !call->message ||
	    call->method == CALL_METHOD_RECORD)
		return;
	entry = (struct recorder_entry){.session = call->session->id,
					.uid = call->session->uid,
					.pid = (uint32_t)call->session->pid,
					.status = status,
					.digest = recording->digest,
					.handles = handles,
					.bytes = call->bytes,
					.request = (uint8_t *)(uintptr_t)call->message,
					.transfers = recording->first};
	recording->first = recording->last = NULL;
	if (recorder_is_on(recorder) && !status && is_about_tensors(call) && !look_at_answer(call, &entry))
		recorder_lose(recorder, "the daemon is out of host memory");
	if (recording->shared) {
		entry.segment = recording->shared->id;
		entry.segment_bytes = recording->shared->memory.bytes;
		entry.segment_writable = recording->shared->memory.writable;
	}
	recorder_add(recorder, &entry, recording->owner);
}
