/* A snapshot of the device. Its moment is between two requests, when nothing runs; its pieces come one by one, as
 * the client asks for them, while everybody else goes on. */
#include "daemon/rpc/calls/perform.h"
#include "daemon/rpc/handlers/handler.h"
#include "daemon/rpc/handlers/record_tensors.h"
#include "daemon/service/kept/snapshot.h"
#include "daemon/service/observed/recorder.h"

enum {
	PIECE_DATA = 5, /* SnapshotPiece.data */
	PIECE_REST_BYTES = 128,
};

static int check(const struct call *call, const Npumem__V1__SnapshotRequest *request)
{
	int status = snapshot_check(call->session, call->error);

	if (!status && request->record)
		status = recorder_check(&call->rpc->service->recorder, call->session, call->error);
	return status;
}

/* A request that will be refused does not wait for the device. */
int resolve_snapshot(struct call *call)
{
	const Npumem__V1__SnapshotRequest *request = call->request->snapshot;
	int status;

	if (request->snapshot)
		return snapshot_find(call->session, request->snapshot, call->error);
	status = check(call, request);
	call->entry.is_exclusive = !status;
	return status;
}

static void make(struct call *call)
{
	struct service *service = call->rpc->service;

	store_image_next(service->persist.store, &service->snapshot.piece);
}

static void append(struct call *call, const struct store_piece *piece)
{
	Npumem__V1__SnapshotPiece message = NPUMEM__V1__SNAPSHOT_PIECE__INIT;
	size_t expected = piece->bytes + PIECE_REST_BYTES, mark;

	message.snapshot = call->rpc->service->snapshot.number;
	message.file = (char *)(uintptr_t)piece->file;
	message.file_bytes = piece->file_bytes;
	message.offset = piece->off;
	message.last = piece->is_last;
	reply_expect(&call->reply, expected);
	mark = reply_open(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, expected);
	reply_fields(&call->reply, &message.base);
	if (piece->bytes)
		memcpy(reply_bytes(&call->reply, PIECE_DATA, piece->bytes), piece->data, piece->bytes);
	reply_close(&call->reply, mark, expected);
}

static int answer_piece(struct call *call)
{
	append(call, &call->rpc->service->snapshot.piece);
	snapshot_told(call->session);
	return 0;
}

static int begin(struct call *call)
{
	return snapshot_begin(call->session, call->error);
}

static int answer(struct call *call)
{
	Npumem__V1__SnapshotPiece message = NPUMEM__V1__SNAPSHOT_PIECE__INIT;

	message.snapshot = call->rpc->service->snapshot.number;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, &message.base);
	return 0;
}

static void give_back(struct call *call)
{
	snapshot_give_back(call->rpc->service);
}

static int tell_gone(struct call *call)
{
	Npumem__V1__SnapshotPiece message = NPUMEM__V1__SNAPSHOT_PIECE__INIT;

	snapshot_gone(call->rpc->service);
	message.last = true;
	reply_message(&call->reply, NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, &message.base);
	return 0;
}

static int refuse_gone(struct call *call)
{
	const struct recorder *recorder = &call->rpc->service->recorder;

	snapshot_gone(call->rpc->service);
	if (recorder->lost)
		return npumem_error_set(call->error, NPUMEM_RESOURCE_EXHAUSTED, "%s", recorder->reason);
	return npumem_error_set(call->error, NPUMEM_CANCELLED, "the recording was cancelled");
}

/* The record is refused after the snapshot has begun. A session that ends has given it up already. */
static int undo(struct call *call, int status)
{
	if (!snapshot_end(call->session))
		return status;
	return perform_later(call, INT64_MAX, give_back, refuse_gone);
}

static const struct record_steps recording = {begin, answer, undo};

static int give_up(struct call *call)
{
	int status = reply_reserve(&call->reply, PIECE_REST_BYTES, call->error);

	if (status)
		return status;
	snapshot_end(call->session);
	return perform_later(call, INT64_MAX, give_back, tell_gone);
}

int handle_snapshot(struct call *call)
{
	const Npumem__V1__SnapshotRequest *request = call->request->snapshot;
	struct service *service = call->rpc->service;
	int status;

	if (!request->snapshot) {
		status = check(call, request);
		if (!status)
			status = reply_reserve(&call->reply, PIECE_REST_BYTES, call->error);
		if (!status && request->record)
			return record_tensors(call, &recording);
		if (!status)
			status = begin(call);
		return status ? status : answer(call);
	}
	status = snapshot_find(call->session, request->snapshot, call->error);
	if (!status && request->end)
		return give_up(call);
	if (!status)
		status = reply_reserve(&call->reply, STORE_PIECE_BYTES + PIECE_REST_BYTES, call->error);
	if (status)
		return status;
	return perform_later(call, store_image_is_long(service->persist.store) ? INT64_MAX : 0, make,
			     answer_piece);
}
