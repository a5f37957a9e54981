/* One Response, written straight into the output: the frame's length, the result, then what is around it.
 *
 * A length comes before what it counts, so its width is guessed from an expected size; where the guess was wrong
 * what follows is moved by a byte or two. protobuf does not mind the order of fields, so the result comes first
 * and id, status and message after it: what went wrong half-way is known only then. Whatever is appended, room for
 * it has been reserved before: appending cannot fail. */
#ifndef RPC_REPLY_H
#define RPC_REPLY_H

#include <npumem/types.h>

#include "daemon/device/memory/heap.h"
#include "proto/npumem.pb-c.h"

/* A growing stretch of bytes to append to. */
enum { BUFFER_LEAST_BYTES = 8 << 10 };

struct buffer {
	const struct heap *heap;
	uint8_t *bytes;
	size_t used, room; /* used <= room */
};

/* Takes no memory yet. */
void buffer_init(struct buffer *buffer, const struct heap *heap);
void buffer_deinit(struct buffer *buffer);

/* Makes room for `bytes` more; what is there may move. 0 or -ENOMEM (nothing changed). */
int buffer_reserve(struct buffer *buffer, size_t bytes);

/* ---- a reply ---- */

struct reply {
	struct buffer *out;
	size_t start; /* of this frame in `out` */
	size_t frame; /* reply_open's mark of the whole message */
	size_t expected_bytes;
};

enum {
	/* A bound for everything but the result: the longest error with all its fields, and the lengths. */
	REPLY_REST_BYTES = 64 + NPUMEM_MESSAGE_BYTES +
			   NPUMEM_FIELDS_MAX * (NPUMEM_FIELD_KEY_BYTES + NPUMEM_FIELD_TEXT_BYTES + 16),
	/* A bound for the tag and length of one more field. */
	REPLY_TAG_BYTES = 10,
};

/* Begins a reply behind what `out` holds. 0 or -ENOMEM. */
int reply_begin(struct reply *reply, struct buffer *out);
/* Before anything is appended: about how long the reply will be; a long one is then not moved at its end.
 */
void reply_expect(struct reply *reply, size_t bytes);
/* Drops the result, all of it. */
void reply_drop(struct reply *reply);
/* Ends it with id and error; error->status 0 is OK, and its message is then left out. */
void reply_end(struct reply *reply, uint64_t id, struct npumem_error *error);

/* Whether `bytes` more of result fit a frame, beside what was appended so far and the id: 0, or INVALID naming
 * both numbers. A reply that keeps its result in spite of an error adds REPLY_REST_BYTES to `bytes`. */
int reply_check_cap(const struct reply *reply, size_t bytes, struct npumem_error *error);
/* Makes room for `bytes` of result and reply_end. 0 or RESOURCE_EXHAUSTED. */
int reply_make_room(struct reply *reply, size_t bytes, struct npumem_error *error);
/* Both. */
int reply_reserve(struct reply *reply, size_t bytes, struct npumem_error *error);
/* Bytes of the reply so far. */
size_t reply_used(const struct reply *reply);
/* Drops what was appended after reply_used() was `used`. */
void reply_rewind(struct reply *reply, size_t used);

/* Opens a nested field and returns a mark to close it with; inner ones are closed first. */
size_t reply_open(struct reply *reply, unsigned field, size_t expected_bytes);
void reply_close(struct reply *reply, size_t mark, size_t expected_bytes);

/* Appends a message as field `field`; its size is at most what was reserved less REPLY_TAG_BYTES. */
void reply_message(struct reply *reply, unsigned field, const ProtobufCMessage *message);
/* Appends a message's fields as they are, into the field that is open. */
void reply_fields(struct reply *reply, const ProtobufCMessage *message);
/* Appends a number, of a field that is unsigned, or signed (sint64); 0 is left out. Fields are below 16. */
void reply_number(struct reply *reply, unsigned field, uint64_t number);
static inline void reply_signed(struct reply *reply, unsigned field, int64_t number)
{
	reply_number(reply, field, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}
/* Appends a bytes field without its bytes and returns where the caller puts them, all of them. */
uint8_t *reply_bytes(struct reply *reply, unsigned field, size_t bytes);

/* Appends what another reply, begun and not ended, has got so far. Room for it has been reserved. */
void reply_append(struct reply *reply, const struct reply *other);

/* Reserves for one message and appends it. 0, or what reply_reserve says. */
int reply_result(struct reply *reply, unsigned field, const ProtobufCMessage *message, struct npumem_error *error);

#endif
