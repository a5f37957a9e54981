/* Blocks of objects, with references. Invariant: `used` <= `room`, both multiples of 16; an object's bytes never
 * move. One thread at a time, as everything of a connection. */
#include "client/lib/messages/result.h"

#include <stdint.h>
#include <string.h>

#include <npumem/client.h>

enum { RESULT_ALIGN = 16, RESULT_CHUNK_BYTES = 4096 };

struct result_chunk {
	struct result_chunk *next;
	size_t used, room;
	_Alignas(RESULT_ALIGN) unsigned char bytes[];
};

/* In front of each object. */
struct owner {
	_Alignas(RESULT_ALIGN) struct result *result;
};

size_t result_room(size_t bytes)
{
	return sizeof(struct owner) + (bytes + RESULT_ALIGN - 1) / RESULT_ALIGN * RESULT_ALIGN;
}

struct result *result_new(const struct memory *memory, struct result **list, size_t room)
{
	struct result *result = memory_alloc(memory, sizeof(*result) + room);
	if (!result)
		return NULL;
	*result = (struct result){.memory = memory, .next = *list, .at = list, .references = 1, .room = room};
	if (*list)
		(*list)->at = &result->next;
	*list = result;
	return result;
}

static void *cut(struct result *result, unsigned char *bytes, size_t *used, size_t need)
{
	struct owner *owner = (struct owner *)(void *)(bytes + *used);
	*used += need;
	memset(owner, 0, need);
	owner->result = result;
	return owner + 1;
}

void *result_take(struct result *result, size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		return NULL;
	size_t need = result_room(bytes);
	if (need <= result->room - result->used)
		return cut(result, result->bytes, &result->used, need);
	struct result_chunk *chunk = result->more;
	if (!chunk || need > chunk->room - chunk->used) {
		size_t room = need > RESULT_CHUNK_BYTES ? need : RESULT_CHUNK_BYTES;
		chunk = memory_alloc(result->memory, sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		*chunk = (struct result_chunk){.next = result->more, .room = room};
		result->more = chunk;
	}
	return cut(result, chunk->bytes, &chunk->used, need);
}

void *result_array(struct result *result, size_t n, size_t bytes)
{
	size_t total;
	return __builtin_mul_overflow(n, bytes, &total) ? NULL : result_take(result, total);
}

const char *result_text(struct result *result, const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = result_take(result, bytes);
	return copy ? memcpy(copy, text, bytes) : NULL;
}

void result_reset(struct result *result)
{
	while (result->more) {
		struct result_chunk *chunk = result->more;
		result->more = chunk->next;
		memory_free(result->memory, chunk);
	}
	result->used = 0;
}

static void end(struct result *result)
{
	if (result->destroy)
		result->destroy(result->bytes + sizeof(struct owner));
	*result->at = result->next;
	if (result->next)
		result->next->at = result->at;
	result_reset(result);
	memory_free(result->memory, result);
}

void result_unref(struct result *result)
{
	if (!--result->references)
		end(result);
}

static struct result *block_of(const void *object)
{
	return ((const struct owner *)object)[-1].result;
}

void result_keep(const void *object)
{
	block_of(object)->references++;
}

void result_release(const void *object)
{
	if (object)
		result_unref(block_of(object));
}

void result_end_all(struct result **list)
{
	while (*list)
		end(*list);
}

void npumem_keep(const void *result)
{
	result_keep(result);
}

void npumem_release(const void *result)
{
	result_release(result);
}
