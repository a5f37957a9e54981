/* A queue of bytes in one piece. Invariant: begin <= end <= capacity; an empty queue starts at 0.
 * Moves its bytes only where at least as many have left since, so that the cost of moving stays linear. */
#include "client/lib/messages/payload.h"

#include <errno.h>
#include <string.h>

int buffer_reserve(struct buffer *buffer, const struct memory *memory, size_t room)
{
	size_t used = buffer_used(buffer), need;
	if (room <= buffer->capacity - buffer->end)
		return 0;
	if (__builtin_add_overflow(used, room, &need))
		return -ENOMEM;
	if (need <= buffer->capacity && buffer->begin >= used) {
		memmove(buffer->bytes, buffer->bytes + buffer->begin, used);
		buffer->begin = 0;
		buffer->end = used;
		return 0;
	}
	size_t capacity = need > SIZE_MAX / 2 ? need : need + need / 2;
	uint8_t *bytes = memory_alloc(memory, capacity);
	if (!bytes)
		return -ENOMEM;
	if (used)
		memcpy(bytes, buffer->bytes + buffer->begin, used);
	memory_free(memory, buffer->bytes);
	*buffer = (struct buffer){.bytes = bytes, .end = used, .capacity = capacity};
	return 0;
}

void buffer_consume(struct buffer *buffer, size_t bytes)
{
	buffer->begin += bytes;
	if (buffer->begin == buffer->end)
		buffer->begin = buffer->end = 0;
}

void buffer_deinit(struct buffer *buffer, const struct memory *memory)
{
	memory_free(memory, buffer->bytes);
	*buffer = (struct buffer){0};
}
