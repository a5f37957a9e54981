/* From JSON to a message, by protobuf's JSON mapping with the names of the .proto. */
#ifndef CLIENT_LIB_JSON_READ_H
#define CLIENT_LIB_JSON_READ_H

#include <protobuf-c/protobuf-c.h>

#include <npumem/types.h>

/* The object that `text` is, as a message of this type, which the caller frees by the allocator. Enumerations are
 * names or numbers, numbers of 64 bits also strings, bytes base64, and what is null is left out; an unknown
 * member, or one given twice, is refused. 0; INVALID, whose message and field "field" say where;
 * RESOURCE_EXHAUSTED. */
int json_read(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	      ProtobufCMessage **out, struct npumem_error *error);

#endif
