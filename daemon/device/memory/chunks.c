#include "daemon/device/memory/chunks.h"

static bool grow(struct chunks *chunks, const struct heap *heap)
{
	size_t room = chunks->room ? 2 * chunks->room : 4;
	void **at = heap_alloc(heap, room * sizeof(*at));
	if (!at)
		return false;
	if (chunks->n)
		memcpy(at, chunks->at, chunks->n * sizeof(*at));
	heap_free(heap, chunks->at);
	chunks->at = at;
	chunks->room = room;
	return true;
}

bool chunks_add(struct chunks *chunks, const struct heap *heap, size_t bytes)
{
	if (chunks->n == chunks->room && !grow(chunks, heap))
		return false;
	void *chunk = heap_zalloc(heap, 1, bytes);
	if (chunk)
		chunks->at[chunks->n++] = chunk;
	return chunk;
}

void chunks_deinit(struct chunks *chunks, const struct heap *heap)
{
	while (chunks->n)
		heap_free(heap, chunks->at[--chunks->n]);
	heap_free(heap, chunks->at);
	*chunks = (struct chunks){.n = 0};
}
