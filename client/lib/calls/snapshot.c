/* A snapshot, piece by piece. */
#include "client/lib/calls/calls.h"

#include <string.h>

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"

int snapshot_take(struct npumem_request *request, const Npumem__V1__Response *response, struct npumem_error *error)
{
	const Npumem__V1__SnapshotPiece *from = response->snapshot;
	struct npumem_piece *piece = result_take(request->results, sizeof(*piece));
	size_t file_bytes = strlen(from->file) + 1;
	char *file = result_array(request->results, file_bytes, 1);
	uint8_t *data = result_array(request->results, from->data.len, 1);
	if (!piece || !file || !data)
		return request_no_memory(error);
	memcpy(file, from->file, file_bytes);
	if (from->data.len)
		memcpy(data, from->data.data, from->data.len);
	*piece = (struct npumem_piece){.snapshot = from->snapshot,
				       .file = file,
				       .file_bytes = from->file_bytes,
				       .offset = from->offset,
				       .data = data,
				       .bytes = from->data.len,
				       .last = from->last};
	request->answer = piece;
	return 0;
}

int snapshot_ask(struct npumem_request *request, uint64_t number, bool record, struct npumem_error *error)
{
	Npumem__V1__SnapshotRequest ask = NPUMEM__V1__SNAPSHOT_REQUEST__INIT;
	ask.snapshot = number;
	ask.record = record;
	return request_send(request, &MESSAGE_REQUEST(SNAPSHOT, snapshot, &ask), NULL, error);
}

int npumem_snapshot_async(struct npumem *npumem, uint64_t snapshot, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_SNAPSHOT, .take = snapshot_take};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	return request_sent(made, snapshot_ask(made, snapshot, false, error), request);
}
