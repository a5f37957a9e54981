/* Messages as JSON. */
#ifndef CLIENT_LIB_JSON_H
#define CLIENT_LIB_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include <protobuf-c/protobuf-c.h>

/* The members between the braces, with a comma before each but the first, and before that one where `more`: those
 * that are set, under their names in the .proto. Enumerations are names; fixed64 are strings of 16 hexadecimal
 * digits, uint64 strings where they do not fit 63 bits; bytes are how many there are. Returns whether there are
 * any, or `more`. */
bool json_members(FILE *out, const ProtobufCMessage *message, bool more);
/* A string, quoted; what is no valid UTF-8 becomes "?". */
void json_text(FILE *out, const char *text);

#endif
