/* Calls that move data: write, read, fill, copy.
 * Whole tensors are cut into chunks at element boundaries; a few are kept in flight, so that the socket, this
 * process and the daemon work at once, and no more of a tensor is queued than that. */
#include <string.h>

#include "client/lib/call.h"
#include "client/lib/reply.h"
#include "client/lib/request.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "host arrays travel as they are, little-endian");

enum {
	CHUNK_BYTES = 1 << 20, /* a multiple of every element's size; stays in a core's cache on its way */
	CHUNKS_IN_FLIGHT = 4,
};

/* ---- single requests ---- */

static void write_message(uint64_t handle, int64_t first, const void *data, size_t bytes,
			  Npumem__V1__WriteRequest *message, Npumem__V1__Ref *ref)
{
	npumem__v1__write_request__init(message);
	message->tensor = request_ref(handle, ref);
	message->first = first;
	message->data.data = (uint8_t *)(uintptr_t)data;
	message->data.len = bytes;
}

int npumem_write_send(struct npumem *npumem, uint64_t handle, int64_t first, const void *data, size_t bytes,
		      npumem_callback *callback, void *context, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest message;
	Npumem__V1__Ref ref;
	call_clear(error);
	write_message(handle, first, data, bytes, &message, &ref);
	request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
	request.write = &message;
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, 0, callback, context, error);
}

int npumem_read_send(struct npumem *npumem, uint64_t handle, int64_t first, int64_t count,
		     npumem_callback *callback, void *context, struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__ReadRequest message = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref;
	call_clear(error);
	message.tensor = request_ref(handle, &ref);
	message.first = first;
	message.count = count;
	request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
	request.read = &message;
	return call_callback(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, 0, callback, context, error);
}

/* ---- whole tensors ---- */

/* A transfer of a whole tensor, in chunks. */
struct transfer {
	struct npumem *npumem;
	uint64_t handle;
	size_t element_bytes;
	uint8_t *to;	     /* read */
	const uint8_t *from; /* write */
	struct npumem_done *done;
	bool any_done;
};

struct chunk {
	struct call call;
	struct transfer *transfer;
	size_t at, bytes;
};

static int take_chunk(struct call *call, const Npumem__V1__Response *response)
{
	struct chunk *chunk = call->result;
	struct transfer *transfer = chunk->transfer;
	if (transfer->done && (!transfer->any_done || response->done->warning[0])) {
		reply_done(response->done, transfer->done);
		transfer->any_done = true;
	}
	if (!transfer->to)
		return 0;
	if (response->done->data.len != chunk->bytes)
		return -1;
	memcpy(transfer->to + chunk->at, response->done->data.data, chunk->bytes);
	return 0;
}

static int chunk_send(struct transfer *transfer, struct chunk *chunk, size_t at, size_t bytes,
		      struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__WriteRequest write;
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref;
	int64_t first = (int64_t)(at / transfer->element_bytes);
	*chunk = (struct chunk){.transfer = transfer, .at = at, .bytes = bytes};
	chunk->call = (struct call){.take = take_chunk, .result = chunk};
	if (transfer->from) {
		write_message(transfer->handle, first, transfer->from + at, bytes, &write, &ref);
		request.call_case = NPUMEM__V1__REQUEST__CALL_WRITE;
		request.write = &write;
	} else {
		read.tensor = request_ref(transfer->handle, &ref);
		read.first = first;
		read.count = (int64_t)(bytes / transfer->element_bytes);
		request.call_case = NPUMEM__V1__REQUEST__CALL_READ;
		request.read = &read;
	}
	return call_send(transfer->npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, &chunk->call, error);
}

/* Sends all chunks and waits for all answers; the first failure stops the sending, and is what is returned. */
static int transfer_run(struct transfer *transfer, size_t bytes, struct npumem_error *error)
{
	struct chunk chunks[CHUNKS_IN_FLIGHT];
	size_t sent = 0, answered = 0, at = 0;
	int status = 0;
	while (!status && at < bytes) {
		size_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
		if (sent - answered == CHUNKS_IN_FLIGHT)
			status = call_wait(transfer->npumem, &chunks[answered++ % CHUNKS_IN_FLIGHT].call);
		if (!status)
			status = chunk_send(transfer, &chunks[sent % CHUNKS_IN_FLIGHT], at, n, error);
		if (!status)
			sent++;
		at += n;
	}
	while (answered < sent) {
		int other = call_wait(transfer->npumem, &chunks[answered++ % CHUNKS_IN_FLIGHT].call);
		if (!status)
			status = other;
	}
	return status;
}

/* The size of a tensor as a dense array. A place that came from the daemon was checked, one that the caller made
 * up was not. */
static int transfer_check(struct transfer *transfer, const struct npumem_tensor *tensor, size_t bytes,
			  struct npumem_error *error)
{
	const struct npumem_place *place = &tensor->place;
	int64_t row, size = npumem_dtype_bytes(place->dtype);
	transfer->handle = tensor->handle;
	transfer->element_bytes = (size_t)size;
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

int npumem_write(struct npumem *npumem, const struct npumem_tensor *tensor, const void *data, size_t bytes,
		 struct npumem_error *error)
{
	struct transfer transfer = {.npumem = npumem, .from = data};
	int status = call_begin(npumem, error);
	if (!status)
		status = transfer_check(&transfer, tensor, bytes, error);
	return status ? status : transfer_run(&transfer, bytes, error);
}

int npumem_read(struct npumem *npumem, const struct npumem_tensor *tensor, void *data, size_t bytes,
		struct npumem_done *done, struct npumem_error *error)
{
	struct transfer transfer = {.npumem = npumem, .to = data, .done = done};
	int status = call_begin(npumem, error);
	if (!status)
		status = transfer_check(&transfer, tensor, bytes, error);
	return status ? status : transfer_run(&transfer, bytes, error);
}

/* ---- fill and copy ---- */

static int fill_run(struct npumem *npumem, Npumem__V1__FillRequest *message, uint64_t handle,
		    struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__Ref ref;
	struct call call = {.take = NULL};
	message->tensor = request_ref(handle, &ref);
	request.call_case = NPUMEM__V1__REQUEST__CALL_FILL;
	request.fill = message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, &call, error);
}

int npumem_fill(struct npumem *npumem, uint64_t handle, int64_t value, struct npumem_error *error)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	message.integer = value;
	return fill_run(npumem, &message, handle, error);
}

int npumem_fill_float(struct npumem *npumem, uint64_t handle, double value, struct npumem_error *error)
{
	Npumem__V1__FillRequest message = NPUMEM__V1__FILL_REQUEST__INIT;
	message.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_REAL;
	message.real = value;
	return fill_run(npumem, &message, handle, error);
}

static int take_done(struct call *call, const Npumem__V1__Response *response)
{
	if (call->result)
		reply_done(response->done, call->result);
	return 0;
}

int npumem_copy(struct npumem *npumem, uint64_t destination, uint64_t source, struct npumem_done *done,
		struct npumem_error *error)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	Npumem__V1__CopyRequest message = NPUMEM__V1__COPY_REQUEST__INIT;
	Npumem__V1__Ref refs[2];
	struct call call = {.take = take_done, .result = done};
	message.destination = request_ref(destination, &refs[0]);
	message.source = request_ref(source, &refs[1]);
	request.call_case = NPUMEM__V1__REQUEST__CALL_COPY;
	request.copy = &message;
	return call_run(npumem, &request, NPUMEM__V1__RESPONSE__RESULT_DONE, &call, error);
}
