/* Blocks are cut and merged so that they always tile the arena, free neighbours as one. Blocks live in
 * chunks and name each other by index: no allocation has to move those that there are. */
#include "daemon/device/arena/arena.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/arena/arena_bins.h"

/* Room for one more in the table of chunks, which doubles: eight bytes for 64 blocks. */
static int chunks_ensure(struct arena *arena)
{
	if (arena->n_chunks < arena->chunks_room)
		return 0;
	uint32_t room = arena->chunks_room ? 2 * arena->chunks_room : 16;
	if (arena_fits_grow(&arena->fits, arena->heap, room * CHUNK_BLOCKS))
		return -ENOMEM;
	struct block **chunks = heap_alloc(arena->heap, room * sizeof(struct block *));
	if (!chunks)
		return -ENOMEM;
	if (arena->n_chunks)
		memcpy(chunks, arena->chunks, arena->n_chunks * sizeof(struct block *));
	heap_free(arena->heap, arena->chunks);
	arena->chunks = chunks;
	arena->chunks_room = room;
	return 0;
}

/* CHUNK_BLOCKS more unused entries, the first of which are used first. */
static int chunk_add(struct arena *arena)
{
	if (chunks_ensure(arena))
		return -ENOMEM;
	struct block *chunk = heap_alloc(arena->heap, CHUNK_BLOCKS * sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	uint32_t first = arena->n_chunks * CHUNK_BLOCKS;
	arena->chunks[arena->n_chunks++] = chunk;
	for (uint32_t i = CHUNK_BLOCKS; i-- > 0;) {
		chunk[i] = (struct block){.taken = true, .next = arena->unused};
		if (first + i == NONE)
			continue;
		arena->unused = first + i;
		arena->n_unused++;
	}
	return 0;
}

/* Makes `n` unused entries available beside the spare ones, so that what follows cannot fail. */
static int blocks_ensure(struct arena *arena, uint32_t n)
{
	while (arena->n_unused < n + arena->spare)
		if (chunk_add(arena))
			return -ENOMEM;
	return 0;
}

static uint32_t block_take_entry(struct arena *arena)
{
	uint32_t index = arena->unused;
	assert(index);
	arena->unused = block_at(arena, index)->next;
	arena->n_unused--;
	return index;
}

/* Forgets a block whose bytes its left neighbour has taken over. */
static void block_drop(struct arena *arena, uint32_t index)
{
	struct block *block = block_at(arena, index);
	block_bitmap_remove(&arena->starts, block->offset);
	block_at(arena, block->before)->after = block->after;
	if (block->after)
		block_at(arena, block->after)->before = block->before;
	block->next = arena->unused;
	arena->unused = index;
	arena->n_unused++;
}

/* Cuts `size` quanta off the front of a block that is in no bin; the rest becomes a block of the same state and
 * tag, in no bin either. Returns the rest. */
static uint32_t block_split(struct arena *arena, uint32_t index, uint32_t size)
{
	uint32_t rest = block_take_entry(arena);
	struct block *a = block_at(arena, index), *b = block_at(arena, rest);
	*b = (struct block){.offset = a->offset + size,
			    .size = a->size - size,
			    .before = index,
			    .after = a->after,
			    .taken = a->taken,
			    .tag = a->tag};
	a->size = size;
	a->after = rest;
	if (b->after)
		block_at(arena, b->after)->before = rest;
	block_bitmap_add(&arena->starts, b->offset);
	arena->at[b->offset] = rest;
	return rest;
}

/* Takes [start, start + size) out of a free block that holds it. Needs two unused entries. */
static void block_carve(struct arena *arena, uint32_t index, uint32_t start, uint32_t size, void *tag)
{
	arena_bins_remove(arena, index);
	uint32_t front = start - block_at(arena, index)->offset;
	if (front) {
		uint32_t rest = block_split(arena, index, front);
		arena_bins_push(arena, index);
		index = rest;
	}
	if (block_at(arena, index)->size > size)
		arena_bins_push(arena, block_split(arena, index, size));
	block_at(arena, index)->taken = true;
	block_at(arena, index)->tag = tag;
}

static unsigned align_log_of(uint64_t align)
{
	assert(align >= ARENA_QUANTUM && align <= ARENA_ALIGN_MAX && (align & (align - 1)) == 0);
	return arena_bins_log2((uint32_t)align / ARENA_QUANTUM);
}

static uint32_t align_up(uint32_t x, unsigned align_log)
{
	uint32_t align = UINT32_C(1) << align_log;
	return (x + align - 1) & ~(align - 1);
}

/* A free block that holds `size` quanta at the alignment, or NONE. First the head of the lowest bin that must be
 * large enough, as blocks are mostly aligned; then one that is large enough wherever it starts; only then any, so
 * that a refusal means that there really is no place. */
static uint32_t block_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	struct bin bin = arena_bins_above(size);
	if (arena_bins_find(arena, &bin)) {
		uint32_t head = arena->bins[bin.class][bin.sub];
		const struct block *block = block_at(arena, head);
		if (align_up(block->offset, align_log) + size <= block->offset + block->size)
			return head;
	}
	struct bin sure = arena_bins_above(size + (UINT32_C(1) << align_log) - 1);
	if (arena_bins_find(arena, &sure))
		return arena->bins[sure.class][sure.sub];
	return arena_fits_find(arena, size, align_log);
}

int arena_new(const struct heap *heap, uint64_t bytes, struct arena **out)
{
	assert(bytes > 0 && bytes % ARENA_QUANTUM == 0 && bytes / ARENA_QUANTUM <= QUANTA_MAX);
	struct arena *arena = heap_zalloc(heap, 1, sizeof(*arena));
	if (!arena)
		return -ENOMEM;
	arena->heap = heap;
	arena->size = (uint32_t)(bytes / ARENA_QUANTUM);
	if (block_bitmap_init(&arena->starts, heap, arena->size)) {
		heap_free(heap, arena);
		return -ENOMEM;
	}
	arena->at = heap_alloc(heap, (size_t)arena->size * sizeof(*arena->at));
	if (!arena->at || blocks_ensure(arena, 1)) {
		arena_free(arena);
		return -ENOMEM;
	}
	uint32_t all = block_take_entry(arena);
	*block_at(arena, all) = (struct block){.size = arena->size};
	block_bitmap_add(&arena->starts, 0);
	arena->at[0] = all;
	arena_bins_push(arena, all);
	*out = arena;
	return 0;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	block_bitmap_deinit(&arena->starts);
	heap_free(arena->heap, arena->at);
	for (uint32_t i = 0; i < arena->n_chunks; i++)
		heap_free(arena->heap, arena->chunks[i]);
	heap_free(arena->heap, arena->chunks);
	arena_fits_deinit(&arena->fits, arena->heap);
	heap_free(arena->heap, arena);
}

int arena_alloc(struct arena *arena, uint64_t bytes, uint64_t align, void *tag, uint64_t *offset)
{
	assert(bytes > 0);
	unsigned align_log = align_log_of(align);
	uint64_t size = (bytes + ARENA_QUANTUM - 1) / ARENA_QUANTUM;
	if (size > arena->size)
		return 1;
	uint32_t found = block_find(arena, (uint32_t)size, align_log);
	if (!found)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	uint32_t start = align_up(block_at(arena, found)->offset, align_log);
	block_carve(arena, found, start, (uint32_t)size, tag);
	*offset = (uint64_t)start * ARENA_QUANTUM;
	return 0;
}

static uint32_t block_holding(const struct arena *arena, uint32_t quantum)
{
	return arena->at[block_bitmap_floor(&arena->starts, quantum)];
}

int arena_reserve(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint64_t start = offset / ARENA_QUANTUM, size = bytes / ARENA_QUANTUM;
	if (start >= arena->size || size > arena->size - start)
		return 1;
	uint32_t index = block_holding(arena, (uint32_t)start);
	const struct block *block = block_at(arena, index);
	if (block->taken || start + size > (uint64_t)block->offset + block->size)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	block_carve(arena, index, (uint32_t)start, (uint32_t)size, tag);
	return 0;
}

/* Frees one whole block and merges it with free neighbours. Returns the block it is part of then. */
static uint32_t block_release(struct arena *arena, uint32_t index)
{
	struct block *block = block_at(arena, index);
	assert(block->taken);
	uint32_t after = block->after, before = block->before;
	if (after && !block_at(arena, after)->taken) {
		arena_bins_remove(arena, after);
		block->size += block_at(arena, after)->size;
		block_drop(arena, after);
	}
	if (before && !block_at(arena, before)->taken) {
		arena_bins_remove(arena, before);
		block_at(arena, before)->size += block->size;
		block_drop(arena, index);
		index = before;
	}
	arena_bins_push(arena, index);
	return index;
}

int arena_prepare(struct arena *arena, uint32_t n)
{
	if (blocks_ensure(arena, n))
		return -ENOMEM;
	arena->spare += n;
	return 0;
}

void arena_unprepare(struct arena *arena, uint32_t n)
{
	assert(n <= arena->spare);
	arena->spare -= n;
}

void arena_release(struct arena *arena, uint64_t offset, uint64_t bytes)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM), end = start + (uint32_t)(bytes / ARENA_QUANTUM);
	uint32_t index = block_bitmap_has(&arena->starts, start) ? arena->at[start] : block_holding(arena, start);
	if (block_at(arena, index)->offset < start)
		index = block_split(arena, index, start - block_at(arena, index)->offset);
	for (;;) {
		if (block_at(arena, index)->offset + block_at(arena, index)->size > end)
			block_split(arena, index, end - block_at(arena, index)->offset);
		index = block_release(arena, index);
		if (block_at(arena, index)->offset + block_at(arena, index)->size >= end)
			return;
		index = block_at(arena, index)->after;
	}
}

void arena_retag(struct arena *arena, uint64_t offset, void *tag)
{
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM);
	assert(block_bitmap_has(&arena->starts, start) && block_at(arena, arena->at[start])->taken);
	block_at(arena, arena->at[start])->tag = tag;
}

bool arena_at(const struct arena *arena, uint64_t offset, struct arena_extent *extent)
{
	if (offset / ARENA_QUANTUM >= arena->size)
		return false;
	const struct block *block = block_at(arena, block_holding(arena, (uint32_t)(offset / ARENA_QUANTUM)));
	*extent = (struct arena_extent){.offset = (uint64_t)block->offset * ARENA_QUANTUM,
					.bytes = (uint64_t)block->size * ARENA_QUANTUM,
					.taken = block->taken,
					.tag = block->tag};
	return true;
}

uint64_t arena_free_bytes(const struct arena *arena)
{
	return arena->free * ARENA_QUANTUM;
}

uint64_t arena_largest_fit(const struct arena *arena, uint64_t align)
{
	return (uint64_t)arena_fits_most(&arena->fits, align_log_of(align)) * ARENA_QUANTUM;
}

uint64_t arena_largest_free(const struct arena *arena)
{
	return arena_largest_fit(arena, ARENA_QUANTUM);
}
