/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. Sizes are in quanta of 4 bytes.
 *
 * What fits into a free block follows from its size and from where it starts within a line, the largest alignment.
 * Those alike in both are a pile. The leaders of the piles of one size, at most as many as a line has quanta, are
 * a ring; `sizes` has the sizes of which there are some. So every question looks at a bounded number of blocks,
 * however many there are. */
#ifndef DEVICE_ARENA_SIZES_H
#define DEVICE_ARENA_SIZES_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/block_bitmap.h"

enum {
	CHUNK_BLOCKS = 64,
	QUANTA_MAX = 1 << 28,
	LINE_QUANTA = ARENA_ALIGN_MAX / ARENA_QUANTUM,
};

struct block {
	uint32_t offset, size;
	struct block *before, *after; /* neighbours in order of offset; the arena's edge at its ends */
	struct block *prev, *next;    /* in the ring, or in the pile; `next` also chains unused entries */
	struct block *pile;	      /* of a leader: the others, the first of which has it for `prev` */
	void *tag;
	uint32_t index; /* of the entry; stays */
	bool taken;	/* so is an entry without a block, and one that is neither in a ring nor in a pile */
	bool leads;
};

struct arena {
	const struct heap *heap;
	uint32_t size; /* in quanta */
	uint64_t free; /* in quanta */
	struct block_bitmap starts, sizes;
	/* The entries of the block that starts at a quantum, and of some leader of a size: read only where
	 * `starts` or `sizes` has it, and spread: see arena_sizes_spread. */
	uint32_t *at, *first;
	uint32_t n_lines;
	struct block **chunks; /* of CHUNK_BLOCKS entries each */
	uint32_t n_chunks, chunks_room;
	struct block *unused;
	uint32_t n_unused;
	uint32_t spare;	   /* unused entries that only arena_release may take */
	struct block edge; /* taken */
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

/* A leader of a size that `sizes` has. */
static inline struct block *arena_sizes_first(const struct arena *arena, uint32_t size)
{
	return block_at(arena, arena->first[arena_sizes_spread(arena, size)]);
}

/* What a block has before its first multiple of 2^align_log quanta, which may be past its end. */
static inline uint32_t arena_sizes_front(const struct block *block, unsigned align_log)
{
	return -block->offset & ((UINT32_C(1) << align_log) - 1);
}

/* The parts of the two functions below that are for sizes of which there are others. */
void arena_sizes_join(struct arena *arena, struct block *block);
void arena_sizes_leave(struct arena *arena, struct block *block);

/* A block becomes free. Inline, as is what takes it out: mostly it is the only one of its size. */
static inline void arena_sizes_add(struct arena *arena, struct block *block)
{
	block->taken = false;
	block->tag = NULL;
	arena->free += block->size;
	if (block_bitmap_has(&arena->sizes, block->size)) {
		arena_sizes_join(arena, block);
		return;
	}
	block->prev = block->next = block;
	block->pile = NULL;
	block->leads = true;
	arena->first[arena_sizes_spread(arena, block->size)] = block->index;
	block_bitmap_add(&arena->sizes, block->size);
}

/* A block is no longer free, or about to change. */
static inline void arena_sizes_remove(struct arena *arena, struct block *block)
{
	block->taken = true;
	arena->free -= block->size;
	if (block->next == block && !block->pile)
		block_bitmap_remove(&arena->sizes, block->size);
	else
		arena_sizes_leave(arena, block);
}

/* The smallest free block that `size` quanta fit into at 2^align_log; NULL where there is none. */
struct block *arena_sizes_find(const struct arena *arena, uint32_t size, unsigned align_log);
/* The most quanta that fit into any at 2^align_log. */
uint32_t arena_sizes_most(const struct arena *arena, unsigned align_log);

#endif
