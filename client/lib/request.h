/* Small parts of request messages, on the caller's stack. */
#ifndef CLIENT_LIB_REQUEST_H
#define CLIENT_LIB_REQUEST_H

#include "proto/convert.h"

/* Packing only reads, but the generated structs have no const. */
static inline char *request_text(const char *text)
{
	return text ? (char *)(uintptr_t)text : (char *)(uintptr_t)protobuf_c_empty_string;
}

static inline Npumem__V1__Ref *request_ref(uint64_t handle, Npumem__V1__Ref *ref)
{
	npumem__v1__ref__init(ref);
	ref->handle = handle;
	return ref;
}

/* NULL stays NULL. */
static inline Npumem__V1__Dims *request_stride(const struct npumem_dims *stride, Npumem__V1__Dims *message)
{
	if (!stride)
		return NULL;
	convert_dims_to(stride, message);
	return message;
}

#endif
