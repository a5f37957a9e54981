/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. Sizes are in quanta of 4 bytes; a line is what the largest alignment spans.
 *
 * A free block of whole lines has room for whatever is not larger: those of one size are a heap, and `sizes` has
 * the sizes, in lines, of which there are some. The others are odd_blocks.h's.
 *
 * Of free blocks that are alike the lowest is taken first. So the place of an allocation follows from which bytes
 * are taken, and not from the order in which they were taken: a replay that begins with a snapshot relies on it.
 * Inline, as these lines are most of what an allocation costs. */
#ifndef DEVICE_FREE_BLOCKS_H
#define DEVICE_FREE_BLOCKS_H

#include "daemon/device/arena/block_heap.h"
#include "daemon/device/arena/odd_blocks.h"

enum {
	QUANTA_MAX = 1 << 28,
	CHUNK_BLOCKS = 64,
};

struct arena {
	const struct heap *heap;
	uint32_t size;			   /* in quanta */
	uint64_t free;			   /* in quanta */
	struct block_bitmap starts, sizes; /* lines in which a block starts; sizes of whole free ones */
	struct block **at;		   /* the first that starts in a line; read only where `starts` has it */
	struct block **heaps;		   /* by size in lines; empty or unset where `sizes` does not have it */
	uint32_t coin;			   /* block_heap_merge's */
	struct odd_blocks odd;
	struct chunk *chunks;
	uint32_t n_chunks;
	struct block *unused;
	uint32_t n_unused;
	uint32_t spare;	   /* unused entries that only arena_release may take */
	struct block edge; /* taken, and past the end */
};

/* A block becomes free. */
static inline void free_blocks_add(struct arena *arena, struct block *block)
{
	block->taken = false;
	block->before->has_free_after = block->after->has_free_before = true;
	block->sub[0] = block->sub[1] = &arena->edge;
	if (!block_is_whole(block)) {
		odd_blocks_add(&arena->odd, block);
		return;
	}
	uint32_t lines = block->size / LINE_QUANTA;
	struct block **heap = &arena->heaps[lines];
	struct block *top = *heap;
	top = block_bitmap_has(&arena->sizes, lines) ? top : &arena->edge;
	block_heap_merge(heap, block, top, &arena->coin);
	block_bitmap_add(&arena->sizes, lines);
}

/* A block is no longer free, or about to change. */
static inline void free_blocks_remove(struct arena *arena, struct block *block)
{
	block->taken = true;
	block->before->has_free_after = block->after->has_free_before = false;
	if (!block_is_whole(block)) {
		odd_blocks_remove(&arena->odd, block);
		return;
	}
	uint32_t lines = block->size / LINE_QUANTA;
	block_heap_merge(block->link, block->sub[0], block->sub[1], &arena->coin);
	block_bitmap_remove(&arena->sizes, lines, arena->heaps[lines] == &arena->edge);
}

/* A free block that `size` quanta fit into at 2^align_log: the smallest, or one larger by less than a line. NULL
 * where there is none. Which one it is follows from the free blocks alone. A whole one that is large enough has
 * its place at its start. */
static inline struct block *free_blocks_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	uint64_t lines = block_bitmap_ceil(&arena->sizes, (size + LINE_QUANTA - 1) / LINE_QUANTA);
	struct block *whole = lines == BLOCK_BITMAP_NONE ? NULL : arena->heaps[lines];
	if (!arena->odd.n)
		return whole;
	struct block *odd = odd_blocks_find(&arena->odd, size, align_log);
	return odd && (!whole || odd->size < whole->size) ? odd : whole;
}

/* The most quanta that fit into any at 2^align_log. */
static inline uint32_t free_blocks_most(const struct arena *arena, unsigned align_log)
{
	uint64_t lines = block_bitmap_floor(&arena->sizes, arena->size / LINE_QUANTA);
	uint32_t whole = lines == BLOCK_BITMAP_NONE ? 0 : (uint32_t)lines * LINE_QUANTA;
	uint32_t odd = arena->odd.n ? odd_blocks_most(&arena->odd, align_log) : 0;
	return odd > whole ? odd : whole;
}

#endif
