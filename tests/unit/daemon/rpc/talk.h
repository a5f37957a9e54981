/* Requests with two byte arrays and no socket, over the small device of world.h. */
#ifndef TESTS_TALK_H
#define TESTS_TALK_H

#include "daemon/rpc/rpc.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"
#include "tests/support/message.h"
#include "tests/unit/daemon/service/world.h"

struct talk {
	struct world world;
	struct rpc *rpc;
	struct session session, neighbour, stranger; /* of one uid, and of another */
	struct buffer out;
	Npumem__V1__Response *response; /* the last one */
	uint64_t id;
};

static inline void talk_init_as(struct talk *talk, const struct device_options *options)
{
	if (options)
		world_init_as(&talk->world, options);
	else
		world_init(&talk->world);
	talk->rpc = malloc(sizeof(*talk->rpc));
	rpc_init(talk->rpc, &talk->world.service, &talk->world.heap);
	session_init(&talk->session, &talk->world.service, 1001, 0, NULL);
	session_init(&talk->neighbour, &talk->world.service, 1001, 0, NULL);
	session_init(&talk->stranger, &talk->world.service, 1002, 0, NULL);
	buffer_init(&talk->out, &talk->world.heap);
	talk->response = NULL;
	talk->id = 0;
}

static inline void talk_init(struct talk *talk)
{
	talk_init_as(talk, NULL);
}

static inline void talk_forget(struct talk *talk)
{
	if (talk->response)
		npumem__v1__response__free_unpacked(talk->response, NULL);
	talk->response = NULL;
	talk->out.used = 0;
}

static inline void talk_deinit(struct talk *talk)
{
	talk_forget(talk);
	buffer_deinit(&talk->out);
	session_deinit(&talk->session);
	session_deinit(&talk->neighbour);
	session_deinit(&talk->stranger);
	rpc_deinit(talk->rpc);
	free(talk->rpc);
	world_deinit(&talk->world);
}

static inline void talk_deliver(void *ctx, struct buffer *reply)
{
	struct buffer *out = ctx;
	if (!out->room) {
		*out = *reply;
		buffer_init(reply, out->heap);
		return;
	}
	ck_assert_int_eq(buffer_reserve(out, reply->used), 0);
	memcpy(out->bytes + out->used, reply->bytes, reply->used);
	out->used += reply->used;
}

/* A new one in its place, on a device of its own. */
static inline void talk_again(struct talk *talk, const struct device_options *options)
{
	talk_deinit(talk);
	talk_init_as(talk, options);
}

/* Answers one message where nothing runs beside it. */
static inline int talk_handle(struct rpc *rpc, struct session *session, const uint8_t *message, size_t bytes,
			      struct buffer *out)
{
	struct rpc_peer peer = {.session = session, .deliver = talk_deliver, .ctx = out};
	int status = rpc_receive(rpc, &peer, message, bytes);
	ck_assert_uint_eq(peer.n_calls, 0);
	return status;
}

/* Sends bytes as they are; the answer must be exactly one delimited Response. Returns its status. */
static inline int talk_bytes(struct talk *talk, struct session *session, const uint8_t *message, size_t bytes)
{
	size_t header, body;
	talk_forget(talk);
	ck_assert_int_eq(talk_handle(talk->rpc, session, message, bytes, &talk->out), 0);
	ck_assert_int_eq(frame_parse(talk->out.bytes, talk->out.used, FRAME_BYTES_MAX, &header, &body),
			 FRAME_COMPLETE);
	ck_assert_uint_eq(header + body, talk->out.used);
	talk->response = npumem__v1__response__unpack(NULL, body, talk->out.bytes + header);
	ck_assert_ptr_nonnull(talk->response);
	ck_assert(talk->response->status == NPUMEM__V1__STATUS__OK || talk->response->message[0]);
	return (int)talk->response->status;
}

static inline int talk_request_as(struct talk *talk, struct session *session, Npumem__V1__Request *request)
{
	request->id = ++talk->id;
	size_t bytes = npumem__v1__request__get_packed_size(request);
	uint8_t *message = malloc(bytes);
	npumem__v1__request__pack(request, message);
	int status = talk_bytes(talk, session, message, bytes);
	free(message);
	ck_assert_uint_eq(talk->response->id, talk->id);
	return status;
}

/* TALK(&talk, alloc, ALLOC, &message): sends the message as that call. */
#define TALK_AS(talk, session, member, CALL, message)                                                             \
	talk_request_as(talk, session,                                                                            \
			&(Npumem__V1__Request){PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),         \
					       .call_case = NPUMEM__V1__REQUEST__CALL_##CALL,                     \
					       .member = (message)})
#define TALK(talk, member, CALL, message) TALK_AS(talk, &(talk)->session, member, CALL, message)

/* An int8 spec [1, c, 1, w]. */
struct talk_spec {
	Npumem__V1__Spec spec;
	Npumem__V1__Dims shape;
};

static inline Npumem__V1__Spec *talk_spec(struct talk_spec *to, int64_t c, int64_t w)
{
	npumem__v1__spec__init(&to->spec);
	npumem__v1__dims__init(&to->shape);
	to->spec.dtype = NPUMEM__V1__DTYPE__INT8;
	to->shape.n = 1;
	to->shape.c = c;
	to->shape.h = 1;
	to->shape.w = w;
	to->spec.shape = &to->shape;
	return &to->spec;
}

static inline int talk_alloc_as(struct talk *talk, struct session *session, const char *name, int64_t c, int64_t w)
{
	struct talk_spec spec;
	Npumem__V1__Allocation allocation = NPUMEM__V1__ALLOCATION__INIT, *list = &allocation;
	allocation.spec = talk_spec(&spec, c, w);
	allocation.name = (char *)name;
	Npumem__V1__AllocRequest request = {MESSAGE(alloc_request), .n_tensors = 1, .tensors = &list};
	return TALK_AS(talk, session, alloc, ALLOC, &request);
}

/* Allocates [1, 8, 1, 16]; returns the handle. */
static inline uint64_t talk_tensor(struct talk *talk, const char *name)
{
	ck_assert_int_eq(talk_alloc_as(talk, &talk->session, name, 8, 16), 0);
	ck_assert_uint_eq(talk->response->allocated->n_tensors, 1);
	return talk->response->allocated->tensors[0]->handle;
}

static inline Npumem__V1__Ref talk_ref(uint64_t handle, const char *name)
{
	Npumem__V1__Ref ref = {MESSAGE(ref), .handle = handle, .name = (char *)name};
	return ref;
}

static inline int talk_write_as(struct talk *talk, struct session *session, uint64_t handle, int64_t first,
				const void *data, size_t bytes)
{
	Npumem__V1__Ref ref = talk_ref(handle, "");
	Npumem__V1__WriteRequest request = {MESSAGE(write_request), .tensor = &ref, .first = first,
					    .data = (ProtobufCBinaryData){bytes, (uint8_t *)data}};
	return TALK_AS(talk, session, write, WRITE, &request);
}

static inline int talk_read_as(struct talk *talk, struct session *session, uint64_t handle, int64_t first,
			       int64_t count)
{
	Npumem__V1__Ref ref = talk_ref(handle, "");
	Npumem__V1__ReadRequest request = {MESSAGE(read_request), .tensor = &ref, .first = first, .count = count};
	return TALK_AS(talk, session, read, READ, &request);
}

static inline int talk_fill(struct talk *talk, uint64_t handle, int64_t value)
{
	Npumem__V1__Ref ref = talk_ref(handle, "");
	Npumem__V1__FillRequest request = {MESSAGE(fill_request), .tensor = &ref,
					   .value_case = NPUMEM__V1__FILL_REQUEST__VALUE_INTEGER,
					   .integer = value};
	return TALK(talk, fill, FILL, &request);
}

static inline int64_t talk_field(const struct talk *talk, const char *key)
{
	for (size_t i = 0; i < talk->response->n_fields; i++)
		if (strcmp(talk->response->fields[i]->key, key) == 0 &&
		    talk->response->fields[i]->value_case == NPUMEM__V1__FIELD__VALUE_NUMBER)
			return talk->response->fields[i]->number;
	return -1;
}

#define talk_says(talk, text)                                                                                     \
	ck_assert_msg(strstr((talk)->response->message, text), "\"%s\" does not say \"%s\"",                      \
		      (talk)->response->message, text)

/* A request that was answered `result` was refused like this: `text` is in the message. */
#define talk_fails(talk, result, status, text)                                                                    \
	do {                                                                                                      \
		ck_assert_int_eq(result, status);                                                                 \
		talk_says(talk, text);                                                                            \
	} while (0)

#endif
