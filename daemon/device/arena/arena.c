/* Blocks are cut and merged so that they always tile the arena, free neighbours as one. Blocks live in chunks: no
 * allocation has to move those that there are. A line knows the first block that starts in it, and blocks their
 * neighbours, so that any byte's block is found. */
#include "daemon/device/arena/arena.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/arena/free_blocks.h"

struct chunk {
	struct chunk *next;
	struct block blocks[CHUNK_BLOCKS];
};

static_assert(LINE_QUANTA * ARENA_QUANTUM == ARENA_ALIGN_MAX, "what block_heap.h says of a line");
static_assert(sizeof(struct block) <= 56, "each tensor has one: see tensors/tensor.h");

static void block_give_entry(struct arena *arena, struct block *block)
{
	block->taken = true;
	block->next = arena->unused;
	arena->unused = block;
	arena->n_unused++;
}

static struct block *block_take_entry(struct arena *arena)
{
	struct block *block = arena->unused;
	assert(block);
	arena->unused = block->next;
	arena->n_unused--;
	return block;
}

/* CHUNK_BLOCKS more unused entries, the first of which are used first. */
static int chunk_add(struct arena *arena)
{
	struct chunk *chunk = heap_alloc(arena->heap, sizeof(*chunk));
	if (!chunk)
		return -ENOMEM;
	for (unsigned i = CHUNK_BLOCKS; i-- > 0;)
		block_give_entry(arena, &chunk->blocks[i]);
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	arena->n_chunks++;
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

/* Forgets a block whose bytes its left neighbour has taken over. */
static void block_drop(struct arena *arena, struct block *block)
{
	uint32_t line = block->offset / LINE_QUANTA;
	if (arena->at[line] == block) {
		if (block->after->offset / LINE_QUANTA == line)
			arena->at[line] = block->after;
		else
			block_bitmap_remove(&arena->starts, line, true);
	}
	block->before->after = block->after;
	block->after->before = block->before;
	block_give_entry(arena, block);
}

/* A block is in order from now on, behind the one before it. */
static void block_index(struct arena *arena, struct block *block)
{
	uint32_t line = block->offset / LINE_QUANTA;
	if (block_bitmap_has(&arena->starts, line) && arena->at[line]->offset < block->offset)
		return;
	arena->at[line] = block;
	block_bitmap_add(&arena->starts, line);
}

/* Cuts `size` quanta off the front of a block that is in no list; the rest becomes a block of the same state and
 * tag, in no list either. Returns the rest. */
static struct block *block_split(struct arena *arena, struct block *block, uint32_t size)
{
	struct block *rest = block_take_entry(arena);
	rest->offset = block->offset + size;
	rest->size = block->size - size;
	rest->before = block;
	rest->after = block->after;
	rest->taken = true;
	rest->has_free_before = false;
	rest->has_free_after = block->has_free_after;
	rest->tag = block->tag;
	block->size = size;
	block->after = rest;
	block->has_free_after = false;
	rest->after->before = rest;
	block_index(arena, rest);
	return rest;
}

/* Takes [start, start + size) out of a free block that holds it. Needs two unused entries. */
static void block_carve(struct arena *arena, struct block *block, uint32_t start, uint32_t size, void *tag)
{
	free_blocks_remove(arena, block);
	arena->free -= size;
	block->has_free_before = block->has_free_after = false;
	uint32_t front = start - block->offset;
	if (front) {
		struct block *rest = block_split(arena, block, front);
		free_blocks_add(arena, block);
		block = rest;
	}
	if (block->size > size)
		free_blocks_add(arena, block_split(arena, block, size));
	block->tag = tag;
}

static unsigned align_log_of(uint64_t align)
{
	assert(align >= ARENA_QUANTUM && align <= ARENA_ALIGN_MAX && (align & (align - 1)) == 0);
	return (unsigned)__builtin_ctzll(align / ARENA_QUANTUM);
}

/* What arena_free takes back, as far as it got. 0 or -ENOMEM. */
static int arena_take_memory(struct arena *arena)
{
	const struct heap *heap = arena->heap;
	uint32_t n_lines = arena->size / LINE_QUANTA + 1;
	if (block_bitmap_init(&arena->starts, heap, n_lines) || block_bitmap_init(&arena->sizes, heap, n_lines) ||
	    odd_blocks_init(&arena->odd, heap, arena->size))
		return -ENOMEM;
	arena->at = heap_alloc(heap, n_lines * sizeof(struct block *));
	arena->heaps = heap_alloc(heap, n_lines * sizeof(struct block *));
	return arena->at && arena->heaps ? blocks_ensure(arena, 1) : -ENOMEM;
}

int arena_new(const struct heap *heap, uint64_t bytes, struct arena **out)
{
	assert(bytes > 0 && bytes % ARENA_QUANTUM == 0 && bytes / ARENA_QUANTUM <= QUANTA_MAX);
	struct arena *arena = heap_zalloc(heap, 1, sizeof(*arena));
	if (!arena)
		return -ENOMEM;
	arena->heap = heap;
	arena->size = (uint32_t)(bytes / ARENA_QUANTUM);
	arena->edge = (struct block){.offset = UINT32_MAX, .taken = true};
	if (arena_take_memory(arena)) {
		arena_free(arena);
		return -ENOMEM;
	}
	struct block *all = block_take_entry(arena);
	all->offset = 0;
	all->size = arena->size;
	arena->free = arena->size;
	all->before = all->after = &arena->edge;
	arena->edge.before = arena->edge.after = all;
	block_index(arena, all);
	free_blocks_add(arena, all);
	*out = arena;
	return 0;
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	block_bitmap_deinit(&arena->starts, arena->heap);
	block_bitmap_deinit(&arena->sizes, arena->heap);
	odd_blocks_deinit(&arena->odd, arena->heap);
	heap_free(arena->heap, arena->at);
	heap_free(arena->heap, arena->heaps);
	while (arena->chunks) {
		struct chunk *next = arena->chunks->next;
		heap_free(arena->heap, arena->chunks);
		arena->chunks = next;
	}
	heap_free(arena->heap, arena);
}

int arena_alloc(struct arena *arena, uint64_t bytes, uint64_t align, void *tag, uint64_t *offset)
{
	assert(bytes > 0);
	unsigned align_log = align_log_of(align);
	uint64_t size = (bytes + ARENA_QUANTUM - 1) / ARENA_QUANTUM;
	if (size > arena->size)
		return 1;
	struct block *block = free_blocks_find(arena, (uint32_t)size, align_log);
	if (!block)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	uint32_t start = block->offset + block_front(block, align_log);
	block_carve(arena, block, start, (uint32_t)size, tag);
	*offset = (uint64_t)start * ARENA_QUANTUM;
	return 0;
}

static struct block *block_holding(const struct arena *arena, uint32_t quantum)
{
	uint64_t line = quantum / LINE_QUANTA;
	if (!block_bitmap_has(&arena->starts, line))
		line = block_bitmap_floor(&arena->starts, line);
	struct block *block = arena->at[line];
	if (block->offset > quantum)
		return block->before;
	while (quantum - block->offset >= block->size)
		block = block->after;
	return block;
}

int arena_reserve(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint64_t start = offset / ARENA_QUANTUM, size = bytes / ARENA_QUANTUM;
	if (start >= arena->size || size > arena->size - start)
		return 1;
	struct block *block = block_holding(arena, (uint32_t)start);
	if (block->taken || start + size > (uint64_t)block->offset + block->size)
		return 1;
	if (blocks_ensure(arena, 2))
		return -ENOMEM;
	block_carve(arena, block, (uint32_t)start, (uint32_t)size, tag);
	return 0;
}

/* Frees one whole block and merges it with free neighbours. Returns the block it is part of then. */
static struct block *block_release(struct arena *arena, struct block *block)
{
	assert(block->taken);
	arena->free += block->size;
	if (block->has_free_after) {
		struct block *after = block->after;
		free_blocks_remove(arena, after);
		block->size += after->size;
		block_drop(arena, after);
	}
	if (block->has_free_before) {
		struct block *before = block->before;
		free_blocks_remove(arena, before);
		before->size += block->size;
		block_drop(arena, block);
		block = before;
	}
	free_blocks_add(arena, block);
	return block;
}

void arena_join(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag)
{
	assert(bytes > 0 && offset % ARENA_QUANTUM == 0 && bytes % ARENA_QUANTUM == 0);
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM), end = start + (uint32_t)(bytes / ARENA_QUANTUM);
	struct block *block = block_holding(arena, start);
	if (block->offset < start)
		block = block_split(arena, block, start - block->offset);
	while (block->offset + block->size < end) {
		struct block *after = block->after;
		assert(after->taken);
		block->size += after->size;
		block->has_free_after = after->has_free_after;
		block_drop(arena, after);
	}
	if (block->offset + block->size > end)
		block_split(arena, block, end - block->offset);
	assert(block->taken);
	block->tag = tag;
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
	struct block *block = block_holding(arena, start);
	if (block->offset < start)
		block = block_split(arena, block, start - block->offset);
	for (;;) {
		if (block->offset + block->size > end)
			block_split(arena, block, end - block->offset);
		block = block_release(arena, block);
		if (block->offset + block->size >= end)
			return;
		block = block->after;
	}
}

void arena_retag(struct arena *arena, uint64_t offset, void *tag)
{
	struct block *block = block_holding(arena, (uint32_t)(offset / ARENA_QUANTUM));
	assert(block->offset == offset / ARENA_QUANTUM && block->taken);
	block->tag = tag;
}

bool arena_at(const struct arena *arena, uint64_t offset, struct arena_extent *extent)
{
	if (offset / ARENA_QUANTUM >= arena->size)
		return false;
	const struct block *block = block_holding(arena, (uint32_t)(offset / ARENA_QUANTUM));
	*extent = (struct arena_extent){.offset = (uint64_t)block->offset * ARENA_QUANTUM,
					.bytes = (uint64_t)block->size * ARENA_QUANTUM,
					.taken = block->taken,
					.tag = block->taken ? block->tag : NULL};
	return true;
}

uint64_t arena_free_bytes(const struct arena *arena)
{
	return arena->free * ARENA_QUANTUM;
}

uint64_t arena_largest_fit(const struct arena *arena, uint64_t align)
{
	return (uint64_t)free_blocks_most(arena, align_log_of(align)) * ARENA_QUANTUM;
}

uint64_t arena_largest_free(const struct arena *arena)
{
	return arena_largest_fit(arena, ARENA_QUANTUM);
}
