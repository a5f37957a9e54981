/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. Sizes are in quanta of 4 bytes; a line is what the largest alignment spans.
 *
 * What fits into a free block follows from its size and from where it starts within a line. Those alike in both
 * are a pile. The leaders of the piles of one size are a ring, from 32 lines on of all sizes of as many whole
 * lines: at most LINE_QUANTA leaders of small blocks, and its square of large ones. `sizes` has the keys of the
 * rings that there are. So every question looks at a bounded number of blocks, however many there are. */
#ifndef DEVICE_ARENA_SIZES_H
#define DEVICE_ARENA_SIZES_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/block_bitmap.h"

enum {
	QUANTA_MAX = 1 << 28,
	LINE_QUANTA = ARENA_ALIGN_MAX / ARENA_QUANTUM,
	SMALL_QUANTA = 32 * LINE_QUANTA,
	CHUNK_BLOCKS = 64,
	BLOCK_BYTES = 64, /* a cache line of the host */
};

struct block {
	uint32_t offset, size;
	struct block *before, *after; /* neighbours in order of offset; the arena's edge at its ends */
	struct block *prev, *next;    /* in the ring, or in the pile; `next` also chains unused entries */
	struct block *pile;	      /* of a leader: the others, the first of which has it for `prev` */
	void *tag;		      /* of a taken one */
	bool taken; /* so is an entry without a block, and one that is in neither ring nor pile */
	bool leads;
};

struct arena {
	const struct heap *heap;
	uint32_t size;			   /* in quanta */
	uint64_t free;			   /* in quanta */
	struct block_bitmap starts, sizes; /* lines in which a block starts; keys of sizes */
	struct block **at;		   /* the first that starts in a line; read only where `starts` has it */
	struct block **rings;		   /* some leader of a key; read only where `sizes` has it */
	struct chunk *chunks;
	uint32_t n_chunks;
	struct block *unused;
	uint32_t n_unused;
	uint32_t spare;	   /* unused entries that only arena_release may take */
	struct block edge; /* taken, and past the end */
};

/* The number of the ring that a size belongs to. */
static inline uint32_t arena_sizes_key(uint32_t size)
{
	return size < SMALL_QUANTA ? size : size / LINE_QUANTA + SMALL_QUANTA - SMALL_QUANTA / LINE_QUANTA;
}

/* What a block has before its first multiple of 2^align_log quanta, which may be past its end. */
static inline uint32_t arena_sizes_front(const struct block *block, unsigned align_log)
{
	return -block->offset & ((UINT32_C(1) << align_log) - 1);
}

/* The parts of the two functions below that are for rings with others in them. */
void arena_sizes_join(struct arena *arena, struct block *block);
void arena_sizes_leave(struct arena *arena, struct block *block);

/* A block becomes free. Inline, as is what takes it out: these lines are much of what an allocation costs. */
static inline void arena_sizes_add(struct arena *arena, struct block *block)
{
	uint32_t key = arena_sizes_key(block->size);
	block->taken = false;
	arena->free += block->size;
	if (block_bitmap_has(&arena->sizes, key)) {
		arena_sizes_join(arena, block);
		return;
	}
	block->prev = block->next = block;
	block->pile = NULL;
	block->leads = true;
	arena->rings[key] = block;
	block_bitmap_add(&arena->sizes, key);
}

/* A block is no longer free, or about to change. */
static inline void arena_sizes_remove(struct arena *arena, struct block *block)
{
	block->taken = true;
	arena->free -= block->size;
	if (block->next == block && !block->pile)
		block_bitmap_remove(&arena->sizes, arena_sizes_key(block->size));
	else
		arena_sizes_leave(arena, block);
}

/* A free block that `size` quanta fit into at 2^align_log: the smallest, or one larger by less than a line. NULL
 * where there is none. */
struct block *arena_sizes_find(const struct arena *arena, uint32_t size, unsigned align_log);
/* The most quanta that fit into any at 2^align_log. */
uint32_t arena_sizes_most(const struct arena *arena, unsigned align_log);

#endif
