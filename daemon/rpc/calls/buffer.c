/* Growth by doubling up to a megabyte and by a megabyte from there on, so that one long reply does not take twice
 * its size. */
#include "daemon/rpc/calls/buffer.h"

#include <errno.h>

enum { STEP_BYTES = 1 << 20 };

void buffer_init(struct buffer *buffer, const struct heap *heap)
{
	*buffer = (struct buffer){.heap = heap};
}

void buffer_deinit(struct buffer *buffer)
{
	heap_free(buffer->heap, buffer->bytes);
	*buffer = (struct buffer){.heap = buffer->heap};
}

int buffer_reserve(struct buffer *buffer, size_t bytes)
{
	size_t need, room;
	uint8_t *grown;

	if (bytes <= buffer->room - buffer->used)
		return 0;
	if (__builtin_add_overflow(buffer->used, bytes, &need) ||
	    __builtin_add_overflow(buffer->room, buffer->room < STEP_BYTES ? buffer->room : STEP_BYTES, &room))
		return -ENOMEM;
	if (room < BUFFER_LEAST_BYTES)
		room = BUFFER_LEAST_BYTES;
	if (room < need)
		room = need;
	grown = heap_alloc(buffer->heap, room);
	if (!grown)
		return -ENOMEM;
	if (buffer->used)
		memcpy(grown, buffer->bytes, buffer->used);
	heap_free(buffer->heap, buffer->bytes);
	buffer->bytes = grown;
	buffer->room = room;
	return 0;
}
