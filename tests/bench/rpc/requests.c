/* Messages are packed once, before anything is measured. */
#include "tests/bench/rpc/requests.h"

#include <stdlib.h>
#include <string.h>

#include "floor.pb-c.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"

enum { CHANNELS = 8 };

static void add(struct batch *batch, const ProtobufCMessage *message)
{
	size_t n_bytes = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = malloc(n_bytes + 1);
	if (!bytes)
		peer_die("no memory");
	protobuf_c_message_pack(message, bytes);
	load_add(batch, bytes, n_bytes);
	free(bytes);
}

static Npumem__V1__Request request_of(const struct batch *batch, Npumem__V1__Request__CallCase call)
{
	Npumem__V1__Request request = NPUMEM__V1__REQUEST__INIT;
	request.id = batch->n_frames + 1;
	request.call_case = call;
	return request;
}

static Npumem__V1__Ref ref_of(uint64_t handle)
{
	Npumem__V1__Ref ref = NPUMEM__V1__REF__INIT;
	ref.handle = handle;
	return ref;
}

static Npumem__V1__FillRequest fill_of(Npumem__V1__Ref *ref)
{
	Npumem__V1__FillRequest fill = NPUMEM__V1__FILL_REQUEST__INIT;
	fill.tensor = ref;
	fill.value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER;
	fill.integer = 1;
	return fill;
}

void requests_fill(struct batch *batch, uint64_t handle)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_FILL);
	Npumem__V1__Ref ref = ref_of(handle);
	Npumem__V1__FillRequest fill = fill_of(&ref);
	request.fill = &fill;
	add(batch, &request.base);
}

/* An operation with all that it points at. */
struct operation {
	Npumem__V1__Operation operation;
	Npumem__V1__FillRequest fill;
	Npumem__V1__Ref ref;
};

void requests_submit(struct batch *batch, const uint64_t *handles, unsigned n_handles, unsigned n_fills)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_SUBMIT);
	Npumem__V1__SubmitRequest submit = NPUMEM__V1__SUBMIT_REQUEST__INIT;
	struct operation *operations = calloc(n_fills, sizeof(*operations));
	submit.operations = calloc(n_fills, sizeof(*submit.operations));
	if (!operations || !submit.operations)
		peer_die("no memory");
	for (unsigned i = 0; i < n_fills; i++) {
		struct operation *at = &operations[i];
		npumem__v1__operation__init(&at->operation);
		at->ref = ref_of(handles[i % n_handles]);
		at->fill = fill_of(&at->ref);
		at->operation.kind_case = NPUMEM__V1__OPERATION__KIND_FILL;
		at->operation.fill = &at->fill;
		submit.operations[submit.n_operations++] = &at->operation;
	}
	request.submit = &submit;
	add(batch, &request.base);
	free(submit.operations);
	free(operations);
}

void requests_alloc(struct batch *batch, int64_t w)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_ALLOC);
	Npumem__V1__AllocRequest alloc = NPUMEM__V1__ALLOC_REQUEST__INIT;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *allocations = &allocation;
	Npumem__V1__Spec spec = NPUMEM__V1__SPEC__INIT;
	Npumem__V1__Dims shape = {PROTOBUF_C_MESSAGE_INIT(&npumem__v1__dims__descriptor), 1, CHANNELS, 1, w};
	spec.dtype = NPUMEM__V1__DTYPE__INT8;
	spec.shape = &shape;
	allocation.spec = &spec;
	alloc.n_tensors = 1;
	alloc.tensors = &allocations;
	request.alloc = &alloc;
	add(batch, &request.base);
}

void requests_view(struct batch *batch, uint64_t base, int64_t w)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_VIEW);
	Npumem__V1__ViewRequest view = NPUMEM__V1__VIEW_REQUEST__INIT;
	Npumem__V1__Ref ref = ref_of(base);
	Npumem__V1__Dims from = NPUMEM__V1__DIMS__INIT, to = from;
	to.n = to.h = 1;
	to.c = CHANNELS;
	to.w = w;
	view.tensor = &ref;
	view.from = &from;
	view.to = &to;
	request.view = &view;
	add(batch, &request.base);
}

void requests_free(struct batch *batch, uint64_t handle)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_FREE);
	Npumem__V1__FreeRequest free_request = NPUMEM__V1__FREE_REQUEST__INIT;
	Npumem__V1__Ref ref = ref_of(handle), *refs = &ref;
	free_request.n_tensors = 1;
	free_request.tensors = &refs;
	request.free = &free_request;
	add(batch, &request.base);
}

void requests_write(struct batch *batch, uint64_t handle, size_t n_bytes)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_WRITE);
	Npumem__V1__WriteRequest write = NPUMEM__V1__WRITE_REQUEST__INIT;
	Npumem__V1__Ref ref = ref_of(handle);
	write.tensor = &ref;
	write.data.len = n_bytes;
	write.data.data = calloc(1, n_bytes);
	if (!write.data.data)
		peer_die("no memory");
	request.write = &write;
	add(batch, &request.base);
	free(write.data.data);
}

void requests_read(struct batch *batch, uint64_t handle, size_t n_bytes)
{
	Npumem__V1__Request request = request_of(batch, NPUMEM__V1__REQUEST__CALL_READ);
	Npumem__V1__ReadRequest read = NPUMEM__V1__READ_REQUEST__INIT;
	Npumem__V1__Ref ref = ref_of(handle);
	read.tensor = &ref;
	read.count = (int64_t)n_bytes;
	request.read = &read;
	add(batch, &request.base);
}

/* ---- what the daemon answers ---- */

static Npumem__V1__Response *ask(int fd, const struct batch *frame)
{
	size_t n_bytes;
	uint8_t *bytes = load_ask(fd, frame, &n_bytes);
	Npumem__V1__Response *response = npumem__v1__response__unpack(NULL, n_bytes, bytes);
	free(bytes);
	if (!response)
		peer_die("a reply that is none");
	if (response->status != NPUMEM__V1__STATUS__OK)
		peer_die(response->message);
	return response;
}

uint64_t requests_tensor(int fd, int64_t w, uint64_t base)
{
	struct batch frame = {0};
	if (base)
		requests_view(&frame, base, w);
	else
		requests_alloc(&frame, w);
	Npumem__V1__Response *response = ask(fd, &frame);
	uint64_t handle = base ? response->tensor->handle : response->allocated->tensors[0]->handle;
	npumem__v1__response__free_unpacked(response, NULL);
	free(frame.bytes);
	return handle;
}

size_t requests_handle_off(const struct batch *batch, uint64_t handle)
{
	const uint8_t *at = memmem(batch->bytes, batch->n_bytes, &handle, sizeof(handle));
	if (!at)
		peer_die("a frame without its handle");
	return (size_t)(at - batch->bytes);
}

/* ---- the floor's ---- */

/* Packs an Echo of n_bytes; to be freed. Of `call` the floor looks at the last bits only, so that more of them
 * fill a gap that is too small for `rest`. */
static uint8_t *pack_echo(uint64_t id, uint32_t call, uint64_t handle, size_t n_bytes)
{
	static uint8_t zeros[FRAME_BYTES_MAX];
	static const uint32_t longer[] = {0, 1 << 7, 1 << 14};
	Floor__Echo echo = FLOOR__ECHO__INIT;
	echo.id = id;
	echo.call = call;
	echo.handle = handle;
	echo.rest.data = zeros;
	if (floor__echo__get_packed_size(&echo) > n_bytes) /* a short reply, in which nobody looks for it */
		echo.handle = 0;
	for (unsigned i = 0; i < 3 && floor__echo__get_packed_size(&echo) != n_bytes; i++) {
		echo.call = call | longer[i];
		for (echo.rest.len = 0; floor__echo__get_packed_size(&echo) < n_bytes;)
			echo.rest.len++;
	}
	uint8_t *bytes = malloc(n_bytes + 1);
	if (!bytes || floor__echo__get_packed_size(&echo) != n_bytes)
		peer_die("no flat message of the size of a frame");
	floor__echo__pack(&echo, bytes);
	return bytes;
}

/* The frames of `batch`, flat; its call. */
static uint32_t flatten(const struct batch *batch, uint64_t handle, bool flat, struct batch *out)
{
	uint32_t call = 0;
	size_t header_bytes, n_bytes;
	for (size_t at = 0; at < batch->n_bytes; at += header_bytes + n_bytes) {
		frame_parse(batch->bytes + at, batch->n_bytes - at, FRAME_BYTES_MAX, &header_bytes, &n_bytes);
		const uint8_t *message = batch->bytes + at + header_bytes;
		Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, n_bytes, message);
		call = request->call_case;
		uint8_t *echo = flat ? pack_echo(request->id, call, handle, n_bytes) : NULL;
		load_add(out, flat ? echo : message, n_bytes);
		free(echo);
		npumem__v1__request__free_unpacked(request, NULL);
	}
	return call;
}

/* The daemon's reply to the first frame of a batch, or a flat one of its size. *handle: sent in the frame, and
 * then that of the reply. */
static Floor__Reply *reply_of(const struct load *load, unsigned i, int fd, bool flat, uint32_t call,
			      uint64_t *handle)
{
	struct batch frame = {0};
	size_t header_bytes, n_bytes;
	frame_parse(load->batches[i].bytes, load->batches[i].n_bytes, FRAME_BYTES_MAX, &header_bytes, &n_bytes);
	load_add(&frame, load->batches[i].bytes + header_bytes, n_bytes);
	if (i && load->handle_off)
		memcpy(frame.bytes + load->handle_off, handle, sizeof(*handle));
	Floor__Reply *reply = malloc(sizeof(*reply));
	if (!reply)
		peer_die("no memory");
	floor__reply__init(reply);
	reply->call = call;
	reply->message.data = load_ask(fd, &frame, &reply->message.len);
	free(frame.bytes);
	Npumem__V1__Response *response =
		npumem__v1__response__unpack(NULL, reply->message.len, reply->message.data);
	if (!response || response->status != NPUMEM__V1__STATUS__OK)
		peer_die(response ? response->message : "a reply that is none");
	if (response->result_case == NPUMEM__V1__RESPONSE__RESULT_ALLOCATED)
		*handle = response->allocated->tensors[0]->handle;
	npumem__v1__response__free_unpacked(response, NULL);
	if (flat) {
		free(reply->message.data);
		reply->message.data = pack_echo(1, call, *handle, reply->message.len);
	}
	return reply;
}

void requests_floor(const struct load *load, int fd, bool flat, struct load *floor, int floor_fd)
{
	enum { HANDLE = 0x5a5a5a5a };
	Floor__Script script = FLOOR__SCRIPT__INIT;
	Floor__Reply *replies[LOAD_BATCHES_MAX];
	struct batch frame = {0};
	uint64_t handle = HANDLE;
	*floor = *load;
	memset(floor->batches, 0, sizeof(floor->batches));
	for (unsigned i = 0; i < load->n_batches; i++) {
		uint32_t call = flatten(&load->batches[i], HANDLE, flat, &floor->batches[i]);
		replies[i] = reply_of(load, i, fd, flat, call, &handle);
	}
	if (load->handle_off && flat)
		floor->handle_off = requests_handle_off(&floor->batches[1], HANDLE);
	script.flat = flat;
	script.n_replies = load->n_batches;
	script.replies = replies;
	add(&frame, &script.base);
	load_send(floor_fd, &frame);
	free(frame.bytes);
	for (unsigned i = 0; i < load->n_batches; i++)
		floor__reply__free_unpacked(replies[i], NULL);
}
