/* Reads back the data that an op moved. Invariant: a transfer's bytes are counted in recorder->bytes while it
 * exists, so that the transfers of running operations are bounded, too. */
#include "daemon/service/transfer.h"

#include <zlib.h>

#include "daemon/service/observed/recorder.h"
#include "daemon/service/operations.h"
#include "daemon/service/segments.h"
#include "daemon/service/tables.h"

enum { CHUNK_BYTES = 16 << 10 }; /* on a thread's stack */

static void describe(const struct op *op, struct recorder_transfer *transfer)
{
	const struct npumem_place *place = TENSOR_PLACE(op->tensor);

	transfer->segment = op->system.segment->id;
	transfer->offset = op->system.off;
	transfer->element_bytes = npumem_dtype_bytes(place->dtype);
	transfer->extent = (struct npumem_dims){1, 1, 1, op->count};
	transfer->stride = (struct npumem_dims){1, 1, 1, 1};
	if (!op->system.strided)
		return;
	transfer->stride = op->system.stride;
	transfer->extent = place->shape;
	if (place->layout == NPUMEM_MATRIX)
		transfer->extent = (struct npumem_dims){place->rows, place->cols, 1, 1};
}

struct recorder_transfer *transfer_new(struct session *session, const struct op *op)
{
	struct recorder *recorder = &session->service->recorder;
	struct recorder_transfer *transfer;
	size_t bytes = 0;

	if (!recorder_is_on(recorder) || !op->system.segment || (op->kind != OP_READ && op->kind != OP_WRITE))
		return NULL;
	if (op->kind == OP_WRITE)
		bytes = (size_t)op->count * npumem_dtype_bytes(tensor_dtype(op->tensor));
	transfer = recorder_alloc(recorder, sizeof(*transfer) + bytes);
	if (!transfer)
		return NULL;
	memset(transfer, 0, sizeof(*transfer));
	transfer->is_read = op->kind == OP_READ;
	transfer->bytes = bytes;
	describe(op, transfer);
	return transfer;
}

static void read_back(struct session *session, const struct op *op, int64_t first, int64_t count, uint8_t *to)
{
	struct op back = {.kind = OP_READ, .tensor = op->tensor, .first = first, .count = count};

	back.system.base = to;
	back.system.bytes = (size_t)count * npumem_dtype_bytes(tensor_dtype(op->tensor));
	operations_run(session, &back, NULL);
}

void transfer_take(struct session *session, const struct op *op, struct recorder_transfer *transfer)
{
	int64_t chunk = CHUNK_BYTES / transfer->element_bytes;
	uint8_t room[CHUNK_BYTES];

	if (!transfer->is_read) {
		read_back(session, op, op->first, op->count, transfer->data);
		return;
	}
	for (int64_t at = 0; at < op->count; at += chunk) {
		int64_t n = op->count - at < chunk ? op->count - at : chunk;

		read_back(session, op, op->first + at, n, room);
		transfer->crc32 = (uint32_t)crc32_z(transfer->crc32, room, (size_t)n * transfer->element_bytes);
	}
}
