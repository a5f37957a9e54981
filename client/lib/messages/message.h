/* Small parts of request messages, on the caller's stack. */
#ifndef CLIENT_LIB_MESSAGE_H
#define CLIENT_LIB_MESSAGE_H

#include "proto/convert.h"

/* A request of one call: its name twice, as protoc-c has it, and its message. */
#define MESSAGE_REQUEST(CALL, call, message)                                                                      \
	((Npumem__V1__Request){.base = PROTOBUF_C_MESSAGE_INIT(&npumem__v1__request__descriptor),                 \
			       .call_case = NPUMEM__V1__REQUEST__CALL_##CALL,                                     \
			       .call = (message)})

/* Packing only reads, but the generated structs have no const. */
static inline char *message_text(const char *text)
{
	return text ? (char *)(uintptr_t)text : (char *)(uintptr_t)protobuf_c_empty_string;
}

static inline Npumem__V1__Ref *message_ref(uint64_t handle, Npumem__V1__Ref *ref)
{
	npumem__v1__ref__init(ref);
	ref->handle = handle;
	return ref;
}

/* NULL stays NULL. */
static inline Npumem__V1__Dims *message_dims(const struct npumem_dims *dims, Npumem__V1__Dims *message)
{
	if (!dims)
		return NULL;
	convert_dims_to(dims, message);
	return message;
}

#endif
