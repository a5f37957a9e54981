/* Blocks are cut and merged so that they always tile the arena, free neighbours as one. Blocks live in one growing
 * array and name each other by index, so that growing it moves nothing that is pointed to. */
#include "daemon/device/arena/arena.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/arena/arena_bins.h"

/* Makes `n` unused entries available beside the spare ones, so that what follows cannot fail. */
static int blocks_ensure(struct arena *arena, uint32_t n)
{
	uint32_t wanted = n + arena->spare;
	if (arena->n_unused >= wanted)
		return 0;
	uint32_t capacity = arena->capacity ? arena->capacity * 2 : FIRST_CAPACITY;
	while (capacity - arena->capacity < wanted)
		capacity *= 2;
	struct block *blocks = heap_alloc(arena->heap, (size_t)capacity * sizeof(*blocks));
	if (!blocks)
		return -ENOMEM;
	if (arena_fits_grow(&arena->fits, arena->heap, capacity)) {
		heap_free(arena->heap, blocks);
		return -ENOMEM;
	}
	if (arena->capacity)
		memcpy(blocks, arena->blocks, (size_t)arena->capacity * sizeof(*blocks));
	else
		blocks[NONE].taken = true;
	heap_free(arena->heap, arena->blocks);
	arena->blocks = blocks;
	uint32_t from = arena->capacity ? arena->capacity : 1;
	for (uint32_t i = capacity; i-- > from;) {
		blocks[i].taken = true;
		blocks[i].next = arena->unused;
		arena->unused = i;
		arena->n_unused++;
	}
	arena->capacity = capacity;
	return 0;
}

static uint32_t block_take_entry(struct arena *arena)
{
	uint32_t index = arena->unused;
	assert(index);
	arena->unused = arena->blocks[index].next;
	arena->n_unused--;
	return index;
}

/* Forgets a block whose bytes its left neighbour has taken over. */
static void block_drop(struct arena *arena, uint32_t index)
{
	struct block *block = &arena->blocks[index];
	block_bitmap_remove(&arena->starts, block->offset);
	arena->blocks[block->before].after = block->after;
	if (block->after)
		arena->blocks[block->after].before = block->before;
	block->next = arena->unused;
	arena->unused = index;
	arena->n_unused++;
}

/* Cuts `size` quanta off the front of a block that is in no bin; the rest becomes a block of the same state and
 * tag, in no bin either. Returns the rest. */
static uint32_t block_split(struct arena *arena, uint32_t index, uint32_t size)
{
	uint32_t rest = block_take_entry(arena);
	struct block *a = &arena->blocks[index], *b = &arena->blocks[rest];
	*b = (struct block){.offset = a->offset + size,
			    .size = a->size - size,
			    .before = index,
			    .after = a->after,
			    .taken = a->taken,
			    .tag = a->tag};
	a->size = size;
	a->after = rest;
	if (b->after)
		arena->blocks[b->after].before = rest;
	block_bitmap_add(&arena->starts, b->offset);
	arena->at[b->offset] = rest;
	return rest;
}

/* Takes [start, start + size) out of a free block that holds it. Needs two unused entries. */
static void block_carve(struct arena *arena, uint32_t index, uint32_t start, uint32_t size, void *tag)
{
	arena_bins_remove(arena, index);
	uint32_t front = start - arena->blocks[index].offset;
	if (front) {
		uint32_t rest = block_split(arena, index, front);
		arena_bins_push(arena, index);
		index = rest;
	}
	if (arena->blocks[index].size > size)
		arena_bins_push(arena, block_split(arena, index, size));
	arena->blocks[index].taken = true;
	arena->blocks[index].tag = tag;
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
		const struct block *block = &arena->blocks[head];
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
	arena->blocks[all] = (struct block){.size = arena->size};
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
	heap_free(arena->heap, arena->blocks);
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
	uint32_t start = align_up(arena->blocks[found].offset, align_log);
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
	const struct block *block = &arena->blocks[index];
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
	struct block *block = &arena->blocks[index];
	assert(block->taken);
	uint32_t after = block->after, before = block->before;
	if (after && !arena->blocks[after].taken) {
		arena_bins_remove(arena, after);
		block->size += arena->blocks[after].size;
		block_drop(arena, after);
	}
	if (before && !arena->blocks[before].taken) {
		arena_bins_remove(arena, before);
		arena->blocks[before].size += block->size;
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
	if (arena->blocks[index].offset < start)
		index = block_split(arena, index, start - arena->blocks[index].offset);
	for (;;) {
		if (arena->blocks[index].offset + arena->blocks[index].size > end)
			block_split(arena, index, end - arena->blocks[index].offset);
		index = block_release(arena, index);
		if (arena->blocks[index].offset + arena->blocks[index].size >= end)
			return;
		index = arena->blocks[index].after;
	}
}

void arena_retag(struct arena *arena, uint64_t offset, void *tag)
{
	uint32_t start = (uint32_t)(offset / ARENA_QUANTUM);
	assert(block_bitmap_has(&arena->starts, start) && arena->blocks[arena->at[start]].taken);
	arena->blocks[arena->at[start]].tag = tag;
}

bool arena_at(const struct arena *arena, uint64_t offset, struct arena_extent *extent)
{
	if (offset / ARENA_QUANTUM >= arena->size)
		return false;
	const struct block *block = &arena->blocks[block_holding(arena, (uint32_t)(offset / ARENA_QUANTUM))];
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
