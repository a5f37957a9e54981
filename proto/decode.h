/* A message's bytes to the structs that protoc-c generates, in one pass: what protobuf_c_message_unpack of 1.4
 * accepts, with the values that it gives. All memory is the budget's, and no more fields are read than allowed: a
 * frame of fields, of which one is as little as two bytes, takes a hundred times as long as one of payload.
 * Payloads are not copied: they stay in the message's bytes. Unknown fields are left out: nothing of a message can
 * then lead to bytes that borrowed_rebase does not follow. */
#ifndef PROTO_DECODE_H
#define PROTO_DECODE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/borrowed.h"

/* Of one request: at 10 to 30 ns each, half a millisecond at most. */
enum { DECODE_FIELDS_MAX = 12288 };
/* Text is copied. No field of a request needs more, nor do the names and labels of all fields together. */
enum { DECODE_TEXT_BYTES_MAX = 4096, DECODE_TEXTS_BYTES_MAX = 512 << 10 };

/* Set the first two, and the rest to 0. */
struct decode {
	struct budget *budget;
	size_t n_fields; /* that may still come; of a packed list each byte counts */
	bool has_too_many;
	size_t n_whole; /* where it has too many: messages of its outermost list that were read as a whole */
	const ProtobufCFieldDescriptor *long_text; /* the field whose text is too long, or NULL */
	size_t long_text_bytes;
	size_t texts_bytes;	   /* of all texts so far; more than DECODE_TEXTS_BYTES_MAX are refused */
	struct borrowed *borrowed; /* payloads that lie in the message's bytes */
	const ProtobufCMessage *outermost;
	uint32_t unknown; /* the first field of the outermost message that its type has not; 0: none */
};

/* NULL: malformed; or has_too_many; or long_text is set, or there are too many texts_bytes; or the budget is
 * exceeded or starved. Only types that do not contain themselves: it goes as deep as they are nested. The message
 * lives until the budget is reset. */
ProtobufCMessage *decode_message(struct decode *decode, const ProtobufCMessageDescriptor *type,
				 const uint8_t *bytes, size_t n);

#endif
