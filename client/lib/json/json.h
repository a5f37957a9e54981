/* Messages as JSON. */
#ifndef LIB_JSON_JSON_H
#define LIB_JSON_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>

#include <npumem/types.h>

/* Which parts of a message are written, and how. */
enum json_form {
	JSON_SIZES, /* for looking at: of bytes how many there are; fixed64 as 16 hexadecimal digits */
	JSON_WHOLE, /* all, by protobuf's mapping: bytes in base64; what a double does not hold as strings */
};

/* The members between the braces, with a comma before each but the first, and before that one where `more`: those
 * that are set, under their names in the .proto. Enumerations are names; numbers that do not fit 63 bits are
 * strings. Returns whether there are any, or `more`. */
bool json_members(FILE *out, const ProtobufCMessage *message, bool more, enum json_form form);
/* A string, quoted; what is no valid UTF-8 becomes "?". */
void json_text(FILE *out, const char *text);

/* Bytes of one value of a field in its message, or in its list. */
size_t json_value_bytes(const ProtobufCFieldDescriptor *field);

/* json_read.c. From JSON to a message, by protobuf's JSON mapping with the names of the .proto. */

/* Makes a message of this type from an object; the caller frees it by the allocator. Enumerations are names or
 * numbers. Integers may be strings; those above 2^63 - 1 must be. Bytes are base64. A member that is null counts
 * as absent. An unknown member, or one given twice, is refused. 0; INVALID, with the member in the message and in
 * the error's field "field"; RESOURCE_EXHAUSTED. */
int json_read(const char *text, const ProtobufCMessageDescriptor *type, ProtobufCAllocator *allocator,
	      ProtobufCMessage **out, struct npumem_error *error);

#endif
