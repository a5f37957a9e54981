/* A queue of bytes in one piece: bytes come in at `end` and leave at `begin`. */
#ifndef CLIENT_LIB_BUFFER_H
#define CLIENT_LIB_BUFFER_H

#include <stdint.h>

#include "client/lib/connection/memory.h"

struct buffer {
	uint8_t *bytes;
	size_t begin, end, capacity; /* begin <= end <= capacity */
};

static inline size_t buffer_used(const struct buffer *buffer)
{
	return buffer->end - buffer->begin;
}

/* Makes room for `room` bytes from `end` on; may move what is there. 0 or -ENOMEM (nothing changed). */
int buffer_reserve(struct buffer *buffer, const struct memory *memory, size_t room);

/* Drops `bytes` (<= buffer_used) at the front. */
void buffer_consume(struct buffer *buffer, size_t bytes);

void buffer_deinit(struct buffer *buffer, const struct memory *memory);

#endif
