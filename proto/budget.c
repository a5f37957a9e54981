/* The arena behind budget.h: chunks from which memory is cut off the front, given back all at once.
 * Invariant: `spent` counts every byte handed out since the reset, and never passes `limit`. A single free does
 * nothing, so what protobuf-c 1.4.1 frees twice or forgets on its error paths does no harm. */
#include "proto/budget.h"

#include <stdint.h>
#include <stdlib.h>

enum {
	ALIGN = 16,
	CHUNK_BYTES = 1 << 10,	  /* the least that a chunk holds */
	KEPT_BYTES_MAX = 2 << 20, /* a larger chunk is not kept for the next message */
};

struct budget_chunk {
	struct budget_chunk *next;
	size_t room, used;
	_Alignas(ALIGN) uint8_t bytes[];
};

size_t budget_limit(size_t frame_bytes)
{
	/* Copied payloads cost as much as the frame. A list of operations that name their tensors by short names
	 * costs up to 20 times its bytes, a list of tensors 8 times; lists beyond a few hundred thousand entries
	 * are refused before they are reached. */
	size_t lists = frame_bytes > SIZE_MAX / 24 ? SIZE_MAX : frame_bytes * 24, limit;

	if (lists > (size_t)16 << 20)
		lists = (size_t)16 << 20;
	if (__builtin_mul_overflow(frame_bytes, 8, &limit) || __builtin_add_overflow(limit, lists, &limit) ||
	    __builtin_add_overflow(limit, (size_t)64 << 10, &limit))
		return SIZE_MAX;
	return limit;
}

static struct budget_chunk *chunk_add(struct budget *budget, size_t bytes)
{
	size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES, total;
	struct budget_chunk *chunk;

	/* Chunks double, so that a long list takes few of them. */
	if (budget->chunks && budget->chunks->room < KEPT_BYTES_MAX && room < 2 * budget->chunks->room)
		room = 2 * budget->chunks->room;
	if (__builtin_add_overflow(room, sizeof(*chunk), &total))
		return NULL;
	chunk = budget->alloc(budget->ctx, total);
	if (!chunk)
		return NULL;
	budget->held += total;
	chunk->room = room;
	chunk->used = 0;
	chunk->next = budget->chunks;
	budget->chunks = chunk;
	return chunk;
}

void *budget_alloc(struct budget *budget, size_t bytes)
{
	struct budget_chunk *chunk = budget->chunks;
	void *memory;

	if (bytes > SIZE_MAX - ALIGN || bytes > budget->limit) {
		budget->exceeded = true;
		return NULL;
	}
	bytes = bytes ? (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1) : ALIGN;
	if (bytes > budget->limit - budget->spent) {
		budget->exceeded = true;
		return NULL;
	}
	if (!chunk || bytes > chunk->room - chunk->used) {
		chunk = chunk_add(budget, bytes);
		if (!chunk) {
			budget->starved = true;
			return NULL;
		}
	}
	memory = chunk->bytes + chunk->used;
	chunk->used += bytes;
	budget->spent += bytes;
	return memory;
}

static void *allocator_alloc(void *allocator_data, size_t bytes)
{
	return budget_alloc(allocator_data, bytes);
}

static void allocator_free(void *allocator_data, void *memory)
{
	(void)allocator_data;
	(void)memory;
}

void budget_init(struct budget *budget, void *(*alloc)(void *, size_t), void (*release)(void *, void *), void *ctx)
{
	*budget = (struct budget){
		.allocator = {allocator_alloc, allocator_free, budget},
		.alloc = alloc,
		.free = release,
		.ctx = ctx,
		.limit = budget_limit(0),
	};
}

void budget_deinit(struct budget *budget)
{
	while (budget->chunks) {
		struct budget_chunk *chunk = budget->chunks;

		budget->chunks = chunk->next;
		budget->free(budget->ctx, chunk);
	}
	budget->held = 0;
}

void budget_reset(struct budget *budget, size_t frame_bytes)
{
	struct budget_chunk *kept = NULL;

	while (budget->chunks) {
		struct budget_chunk *chunk = budget->chunks;

		budget->chunks = chunk->next;
		if (!kept && chunk->room <= KEPT_BYTES_MAX)
			kept = chunk;
		else
			budget->free(budget->ctx, chunk);
	}
	budget->held = kept ? sizeof(*kept) + kept->room : 0;
	if (kept) {
		kept->next = NULL;
		kept->used = 0;
	}
	budget->chunks = kept;
	budget->spent = 0;
	budget->limit = budget_limit(frame_bytes);
	budget->exceeded = false;
	budget->starved = false;
}
