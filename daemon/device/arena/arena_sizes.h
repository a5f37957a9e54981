/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. Free blocks of one size are a ring, those that start at a multiple of the
 * largest alignment before the others; `sizes` has the sizes of which there are some. Sizes are in quanta of 4
 * bytes. Inline, as these few lines are most of what an allocation costs. */
#ifndef DEVICE_ARENA_SIZES_H
#define DEVICE_ARENA_SIZES_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/arena_fits.h"
#include "daemon/device/arena/block_bitmap.h"

enum {
	CHUNK_BLOCKS = 64,
	QUANTA_MAX = 1 << 28,
	LINE_QUANTA = ARENA_ALIGN_MAX / ARENA_QUANTUM,
};

struct block {
	uint32_t offset, size;
	struct block *before, *after; /* neighbours in order of offset; the arena's edge at its ends */
	struct block *prev, *next;    /* in the ring of a free one; `next` also chains unused entries */
	void *tag;
	uint32_t index; /* of the entry; stays */
	bool taken;	/* so is an entry without a block, and one that is between two rings */
};

struct arena {
	const struct heap *heap;
	uint32_t size; /* in quanta */
	uint64_t free; /* in quanta */
	struct block_bitmap starts, sizes;
	/* The entries of the block that starts at a quantum, and of the first of a size: read only where `starts`
	 * or `sizes` has it, and spread: see arena_sizes_spread. */
	uint32_t *at, *first;
	uint32_t n_lines;
	struct block **chunks; /* of CHUNK_BLOCKS entries each */
	uint32_t n_chunks, chunks_room;
	struct block *unused;
	uint32_t n_unused;
	uint32_t spare;	   /* unused entries that only arena_release may take */
	struct block edge; /* taken */
	struct arena_fits fits;
};

static inline struct block *block_at(const struct arena *arena, uint32_t index)
{
	return &arena->chunks[index / CHUNK_BLOCKS][index % CHUNK_BLOCKS];
}

/* Where an offset or a size has its element of `at` or `first`. Most are whole lines of 128 bytes: these stand
 * side by side, sixteen to a cache line of the host and not one. */
static inline size_t arena_sizes_spread(const struct arena *arena, uint32_t x)
{
	return (size_t)(x % LINE_QUANTA) * arena->n_lines + x / LINE_QUANTA;
}

static inline bool block_is_aligned(const struct block *block)
{
	return block->offset % LINE_QUANTA == 0;
}

/* The first block of a size that `sizes` has. */
static inline struct block *arena_sizes_first(const struct arena *arena, uint32_t size)
{
	return block_at(arena, arena->first[arena_sizes_spread(arena, size)]);
}

/* A block becomes free. */
static inline void arena_sizes_add(struct arena *arena, struct block *block)
{
	uint32_t *first = &arena->first[arena_sizes_spread(arena, block->size)];
	block->taken = false;
	block->tag = NULL;
	arena->free += block->size;
	if (block_bitmap_has(&arena->sizes, block->size)) {
		struct block *next = block_at(arena, *first);
		block->next = next;
		block->prev = next->prev;
		block->prev->next = next->prev = block;
		if (block_is_aligned(block))
			*first = block->index;
	} else {
		block->next = block->prev = block;
		*first = block->index;
		block_bitmap_add(&arena->sizes, block->size);
	}
	if (!block_is_aligned(block))
		arena_fits_add(arena, block);
}

/* A block is no longer free, or about to change. */
static inline void arena_sizes_remove(struct arena *arena, struct block *block)
{
	block->taken = true;
	arena->free -= block->size;
	if (block->next == block) {
		block_bitmap_remove(&arena->sizes, block->size);
	} else {
		uint32_t *first = &arena->first[arena_sizes_spread(arena, block->size)];
		block->next->prev = block->prev;
		block->prev->next = block->next;
		if (*first == block->index)
			*first = block->next->index;
	}
	if (!block_is_aligned(block))
		arena_fits_remove(arena, block);
}

#endif
