/* From JSON to a message, by protobuf's JSON mapping with the names of the .proto. */
#ifndef CLIENT_LIB_JSON_READ_H
#define CLIENT_LIB_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include <npumem/types.h>

/* Makes a message of this type from an object; the caller frees it by the allocator. Enumerations are names or
 * numbers. Integers may be strings; those above 2^63 - 1 must be. Bytes are base64. A member that is null counts as
 * absent. An unknown member, or one given twice, is refused. 0; INVALID, with the member in the message and in the
 * error's field "field"; RESOURCE_EXHAUSTED. */
int json_read(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	      ProtobufCMessage **out, struct npumem_error *error);

#endif
