/* Messages as JSON. */
#ifndef CLIENT_LIB_JSON_H
#define CLIENT_LIB_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

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

#endif
