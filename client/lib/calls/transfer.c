/* Writing and reading host arrays.
 * Whole tensors are cut into chunks at element boundaries; a few are kept in flight, so that the socket, this
 * process and the daemon work at once, and no more of a tensor is queued than that. */
#include "client/lib/calls/calls.h"

#include "client/lib/connection/engine/engine.h"
#include "client/lib/messages/message.h"
#include "client/lib/messages/reply.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "host arrays travel as they are, little-endian");

enum {
	CHUNK_BYTES = 1 << 20, /* a multiple of every element's size; stays in a core's cache on its way */
};

/* Elements [first, first + count), which are at `at` of the array. */
static int send_chunk(struct npumem_request *request, const struct transfer *transfer, int64_t first,
		      int64_t count, size_t bytes, struct npumem_error *error)
{
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref;
	struct request_extra extra = {.data = NULL};
	if (transfer->is_write) {
		extra.data = transfer->from + transfer->at;
		extra.data_bytes = bytes;
		write.tensor = message_ref(transfer->handle, &ref);
		write.first = first;
		return request_send(request, &MESSAGE_REQUEST(WRITE, write, &write), &extra, error);
	}
	extra.to = transfer->to + transfer->at;
	extra.to_bytes = bytes;
	read.tensor = message_ref(transfer->handle, &ref);
	read.first = first;
	read.count = count;
	return request_send(request, &MESSAGE_REQUEST(READ, read, &read), &extra, error);
}

/* The result is the first answer, or the last one with a warning. */
int transfer_take(struct npumem_request *request, const Npumem__V1__Response *response, struct npumem_error *error)
{
	if (request->answer && !response->done->warning[0])
		return 0;
	request->answer = reply_done(response->done, request->results);
	return request->answer ? 0 : request_no_memory(error);
}

/* The size of a tensor as a dense array. A place that came from the daemon was checked, one that the caller made
 * up was not. */
static int check_size(const struct npumem_tensor *tensor, size_t bytes, struct transfer *transfer,
		      struct npumem_error *error)
{
	const struct npumem_place *place = &tensor->place;
	int64_t row, size = npumem_dtype_bytes(place->dtype);
	request_clear(error);
	transfer->handle = tensor->handle;
	transfer->element_bytes = (size_t)size;
	transfer->bytes = bytes;
	if (!size || place->shape.n < 1 || place->shape.c < 1 || place->shape.h < 1 || place->shape.w < 1 ||
	    place->last_w < 1 || __builtin_mul_overflow(place->shape.c - 1, place->shape.w, &row) ||
	    __builtin_add_overflow(row, place->last_w, &row) || __builtin_mul_overflow(size, row, &size) ||
	    __builtin_mul_overflow(size, place->shape.h, &size) ||
	    __builtin_mul_overflow(size, place->shape.n, &size))
		return npumem_error_set(error, NPUMEM_INVALID, "the tensor has no shape that an array could have");
	if ((uint64_t)size != bytes)
		return npumem_error_set(error, NPUMEM_INVALID, "an array of %zu bytes for a tensor of %lld", bytes,
					(long long)size);
	return 0;
}

int transfer_send(struct npumem_request *request, struct transfer *transfer, struct npumem_error *error)
{
	int status = 0;
	do {
		size_t left = transfer->bytes - transfer->at, bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
		status = send_chunk(request, transfer,
				    transfer->first + (int64_t)(transfer->at / transfer->element_bytes),
				    (int64_t)(bytes / transfer->element_bytes), bytes, error);
		transfer->at += bytes;
	} while (!status && transfer->at < transfer->bytes);
	return status;
}

static int start(struct npumem *npumem, struct transfer *transfer, int64_t count, NPUMEM_ASYNC)
{
	static const struct request_kind kind = {NPUMEM__V1__RESPONSE__RESULT_DONE, .take = transfer_take};
	struct npumem_request *made;
	int status = request_new(npumem, &kind, 0, callback, context, &made, error);
	if (status)
		return status;
	if (transfer->element_bytes)
		status = transfer_send(made, transfer, error);
	else
		status = send_chunk(made, transfer, transfer->first, count, transfer->bytes, error);
	return request_sent(made, status, request);
}

int npumem_write_async(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		       NPUMEM_ASYNC)
{
	struct transfer transfer = {.is_write = true, .from = data};
	int status = check_size(tensor, bytes, &transfer, error);
	return status ? status : start(npumem, &transfer, 0, callback, context, request, error);
}

int npumem_read_async(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		      NPUMEM_ASYNC)
{
	struct transfer transfer = {.to = data};
	int status = check_size(tensor, bytes, &transfer, error);
	return status ? status : start(npumem, &transfer, 0, callback, context, request, error);
}

int npumem_write_part_async(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
			    NPUMEM_ASYNC)
{
	struct transfer transfer = {
		.handle = handle, .first = first, .is_write = true, .from = data, .bytes = bytes};
	return start(npumem, &transfer, 0, callback, context, request, error);
}

int npumem_read_part_async(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count, void *data,
			   size_t bytes, NPUMEM_ASYNC)
{
	struct transfer transfer = {.handle = handle, .first = first, .to = data, .bytes = bytes};
	return start(npumem, &transfer, count, callback, context, request, error);
}
