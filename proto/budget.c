/* The arena behind budget.h: chunks from which memory is cut off the front, given back all at once.
 * Invariant: `spent` counts every byte handed out since the reset, and never passes `limit`. A single free does
 * nothing, so what protobuf-c 1.4.1 frees twice or forgets on its error paths does no harm. */
#include "proto/budget.h"

#include <stdlib.h>

enum {
	CHUNK_BYTES = 1 << 10,	  /* the least that a chunk holds */
	KEPT_BYTES_MAX = 2 << 20, /* a larger chunk is not kept for the next message */
};

struct budget_chunk {
	struct budget_chunk *next;
	size_t room; /* in BUDGET_ALIGN */
	_Alignas(BUDGET_ALIGN) uint8_t bytes[];
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

static void begin_chunk(struct budget *budget, struct budget_chunk *chunk)
{
	budget->chunks = chunk;
	budget->at = chunk->bytes;
	budget->end = chunk->bytes + chunk->room;
}

static bool add_chunk(struct budget *budget, size_t bytes)
{
	size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES, total;
	struct budget_chunk *chunk;

	/* Chunks double, so that a long list takes few of them. */
	if (budget->chunks && budget->chunks->room < KEPT_BYTES_MAX && room < 2 * budget->chunks->room)
		room = 2 * budget->chunks->room;
	if (__builtin_add_overflow(room, sizeof(*chunk), &total))
		return false;
	chunk = budget->alloc(budget->ctx, total);
	if (!chunk)
		return false;
	budget->held += total;
	chunk->room = room;
	chunk->next = budget->chunks;
	begin_chunk(budget, chunk);
	return true;
}

/* Also of nothing there is something. */
void *budget_alloc_slowly(struct budget *budget, size_t bytes)
{
	size_t n = bytes ? (bytes + BUDGET_ALIGN - 1) & ~(size_t)(BUDGET_ALIGN - 1) : BUDGET_ALIGN;

	if (bytes > SIZE_MAX - BUDGET_ALIGN || n > budget->limit - budget->spent) {
		budget->exceeded = true;
		return NULL;
	}
	if (n > (size_t)(budget->end - budget->at) && !add_chunk(budget, n)) {
		budget->starved = true;
		return NULL;
	}
	budget->at += n;
	budget->spent += n;
	return budget->at - n;
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
	budget->at = budget->end = NULL;
}

void budget_move(struct budget *from, struct budget *to)
{
	*to = *from;
	to->allocator.allocator_data = to;
	budget_init(from, to->alloc, to->free, to->ctx);
}

/* A larger chunk than that is not kept for the next message. */
static void keep_one(struct budget *budget)
{
	struct budget_chunk *kept = NULL, *chunk = budget->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		if (!kept && chunk->room <= KEPT_BYTES_MAX)
			kept = chunk;
		else
			budget->free(budget->ctx, chunk);
	}
	budget->held = kept ? sizeof(*kept) + kept->room : 0;
	budget->chunks = kept;
	budget->at = budget->end = NULL;
	if (kept) {
		kept->next = NULL;
		begin_chunk(budget, kept);
	}
}

void budget_reset(struct budget *budget, size_t frame_bytes)
{
	const struct budget_chunk *chunk = budget->chunks;

	if (chunk && !chunk->next && chunk->room <= KEPT_BYTES_MAX)
		budget->at = (uint8_t *)(uintptr_t)chunk->bytes;
	else
		keep_one(budget);
	budget->spent = 0;
	budget->limit = budget_limit(frame_bytes);
	budget->exceeded = false;
	budget->starved = false;
}
