/* The other end of a connection, in the test's own hands: reads requests, writes answers or anything else. */
#ifndef TESTS_CLIENT_PEER_H
#define TESTS_CLIENT_PEER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <npumem/async.h>

#include "client/lib/connection/connection.h"
#include "client/lib/connection/memory.h"
#include "proto/frame.h"
#include "proto/npumem.pb-c.h"
#include "tests/support/test.h"
#include "tests/support/message.h"

struct peer {
	struct npumem *npumem;
	int fd;
	bool may_break; /* nobody is surprised where the connection is gone before its answer */
};

static inline struct peer peer_open_with(const struct memory *memory)
{
	struct peer peer = {.npumem = NULL};
	int ends[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	peer.fd = ends[1];
	int status = connection_new(memory, ends[0], NULL, &peer.npumem, NULL);
	ck_assert(status == 0 || status == NPUMEM_UNAVAILABLE);
	return peer;
}

static inline struct peer peer_open(void)
{
	struct peer peer = peer_open_with(&memory_libc);
	ck_assert_ptr_nonnull(peer.npumem);
	return peer;
}

static inline void peer_write(const struct peer *peer, const void *bytes, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = send(peer->fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0 && peer->may_break)
			return;
		ck_assert_int_gt((int)k, 0);
		at += (size_t)k;
	}
}

/* A response as its frame; the caller frees. */
static inline uint8_t *peer_frame(const Npumem__V1__Response *response, size_t *n)
{
	size_t bytes = npumem__v1__response__get_packed_size(response);
	uint8_t *frame = malloc(bytes + FRAME_HEADER_BYTES_MAX);
	ck_assert_ptr_nonnull(frame);
	*n = frame_header(bytes, frame);
	*n += npumem__v1__response__pack(response, frame + *n);
	return frame;
}

static inline void peer_answer(const struct peer *peer, const Npumem__V1__Response *response)
{
	size_t n;
	uint8_t *frame = peer_frame(response, &n);
	peer_write(peer, frame, n);
	free(frame);
}

/* PEER_ANSWER(&peer, id, done, DONE, &message): the message as the result of a request. */
#define PEER_ANSWER(peer, request, member, RESULT, message)                                                       \
	peer_answer(peer, &(Npumem__V1__Response){                                                                \
				  PROTOBUF_C_MESSAGE_INIT(&npumem__v1__response__descriptor), .id = (request),    \
				  .result_case = NPUMEM__V1__RESPONSE__RESULT_##RESULT, .member = (message)})

static inline void peer_done(const struct peer *peer, uint64_t id, int64_t macs)
{
	Npumem__V1__Done done = NPUMEM__V1__DONE__INIT;
	done.macs = macs;
	PEER_ANSWER(peer, id, done, DONE, &done);
}

static inline void peer_refuse(const struct peer *peer, uint64_t id, int status, const char *why)
{
	Npumem__V1__Response response = {MESSAGE(response), .id = id, .status = (Npumem__V1__Status)status,
					 .message = (char *)(uintptr_t)why};
	peer_answer(peer, &response);
}

static inline void peer_goes_down(const struct peer *peer, uint64_t id)
{
	Npumem__V1__Field field = NPUMEM__V1__FIELD__INIT, *fields = &field;
	field.key = (char *)"going_down";
	field.value_case = NPUMEM__V1__FIELD__VALUE_NUMBER;
	field.number = 1;
	Npumem__V1__Response response = {MESSAGE(response),
					 .id = id,
					 .status = NPUMEM__V1__STATUS__UNAVAILABLE,
					 .message = (char *)"the daemon is going down",
					 .n_fields = 1,
					 .fields = &fields};
	peer_answer(peer, &response);
}

/* A tensor fx8 Q.5 [1,2,3,4] at 0. */
struct peer_tensor {
	Npumem__V1__Tensor message;
	Npumem__V1__Place place;
	Npumem__V1__Dims shape, stride;
	Npumem__V1__Blocks blocks;
};

static inline void peer_tensor_init(struct peer_tensor *tensor, uint64_t handle)
{
	npumem__v1__tensor__init(&tensor->message);
	npumem__v1__place__init(&tensor->place);
	npumem__v1__dims__init(&tensor->shape);
	npumem__v1__dims__init(&tensor->stride);
	npumem__v1__blocks__init(&tensor->blocks);
	tensor->message.handle = handle;
	tensor->message.name = (char *)(uintptr_t) "x";
	tensor->message.state = (char *)(uintptr_t) "ok";
	tensor->message.place = &tensor->place;
	tensor->place.dtype = NPUMEM__V1__DTYPE__FX8;
	tensor->place.layout = NPUMEM__V1__LAYOUT__ALIGNED;
	tensor->place.mode = NPUMEM__V1__MODE__PLAIN;
	tensor->place.frac_bits_given_case = NPUMEM__V1__PLACE__FRAC_BITS_GIVEN_FRAC_BITS;
	tensor->place.frac_bits = 5;
	tensor->place.shape = &tensor->shape;
	tensor->place.stride = &tensor->stride;
	tensor->place.blocks = &tensor->blocks;
	tensor->shape.n = 1;
	tensor->shape.c = 2;
	tensor->shape.h = 3;
	tensor->shape.w = 4;
	tensor->stride.n = 128;
	tensor->stride.c = 128;
	tensor->stride.h = 4;
	tensor->stride.w = 1;
	tensor->place.channels_per_npu = 1;
	tensor->place.bytes_per_npu = 128;
	tensor->place.align_bytes = 128;
	tensor->place.last_w = 4;
}

static inline void peer_allocated(const struct peer *peer, uint64_t id, unsigned n)
{
	struct peer_tensor *tensors = calloc(n + 1, sizeof(*tensors));
	Npumem__V1__Tensor **list = calloc(n + 1, sizeof(*list));
	ck_assert(tensors && list);
	for (unsigned i = 0; i < n; i++) {
		peer_tensor_init(&tensors[i], 100 + i);
		list[i] = &tensors[i].message;
	}
	Npumem__V1__Allocated allocated = {MESSAGE(allocated), .n_tensors = n, .tensors = list};
	PEER_ANSWER(peer, id, allocated, ALLOCATED, &allocated);
	free(list);
	free(tensors);
}

/* The next request that the connection has written; the caller frees. */
static inline Npumem__V1__Request *peer_request(const struct peer *peer)
{
	uint8_t header[FRAME_HEADER_BYTES_MAX];
	size_t n = 0, header_bytes = 0, bytes = 0;
	while (frame_parse(header, n, FRAME_BYTES_MAX, &header_bytes, &bytes) == FRAME_MORE && !header_bytes)
		ck_assert_int_eq((int)recv(peer->fd, header + n++, 1, 0), 1);
	uint8_t *message = malloc(bytes + 1);
	ck_assert_ptr_nonnull(message);
	for (size_t at = 0; at < bytes;) {
		ssize_t k = recv(peer->fd, message + at, bytes - at, 0);
		ck_assert_int_gt((int)k, 0);
		at += (size_t)k;
	}
	Npumem__V1__Request *request = npumem__v1__request__unpack(NULL, bytes, message);
	free(message);
	ck_assert_ptr_nonnull(request);
	return request;
}

/* What a callback was told. */
struct told {
	int times, status;
	int64_t macs;
	unsigned n_tensors;
	uint64_t handle;
	char message[NPUMEM_MESSAGE_BYTES];
	int order; /* the how manieth of all */
};

static int told_count;

static inline void told_callback(void *context, const struct npumem_answer *answer)
{
	struct told *told = context;
	told->times++;
	told->status = answer->status;
	told->macs = answer->done ? answer->done->macs : 0;
	told->order = ++told_count;
	memcpy(told->message, answer->error->message, sizeof(told->message));
}

static inline void peer_close(struct peer *peer)
{
	npumem_close(peer->npumem);
	if (peer->fd >= 0)
		close(peer->fd);
	*peer = (struct peer){.fd = -1};
}

/* The same of an answer with tensors. */
static inline void told_tensors(void *context, const struct npumem_answer *answer)
{
	struct told *told = context;
	told->times++;
	told->status = answer->status;
	told->n_tensors = answer->tensors ? answer->tensors->n : 0;
	told->handle = told->n_tensors ? answer->tensors->list[0]->handle : 0;
}

#endif
