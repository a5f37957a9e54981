/* A growing stretch of bytes to append to. */
#ifndef RPC_BUFFER_H
#define RPC_BUFFER_H

#include <stdint.h>

#include "daemon/device/memory/heap.h"

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

#endif
