/* How many fields a message has, without unpacking it. Unpacking takes time by the field, and a field is as little
 * as two bytes: a frame of fields can take a hundred times as long as one of payload, and this is where that ends.
 */
#ifndef PROTO_FIELDS_H
#define PROTO_FIELDS_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* Of one request: at 10 to 30 ns each to unpack, half a millisecond at most. */
enum { FIELDS_MAX = 16384 };

/* Whether a message has at most `most` fields, those of its inner messages and unknown ones included; a packed
 * list counts by its bytes. Of a malformed message, whether that holds up to where it breaks. Takes no more time
 * than `most` fields do. */
bool fields_within(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t n, size_t most);

#endif
