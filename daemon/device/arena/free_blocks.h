/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. Sizes are in quanta of 4 bytes; a line is what the largest alignment spans.
 *
 * A free block of whole lines has room for whatever is not larger: those of one size are a list, and `sizes` has
 * the sizes, in lines, of which there are some. The others are odd_blocks.h's.
 *
 * Inline, as these lines are most of what an allocation costs, and without branches where blocks come and go at
 * random: a list ends at the arena's edge, which may be written to. */
#ifndef DEVICE_FREE_BLOCKS_H
#define DEVICE_FREE_BLOCKS_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/odd_blocks.h"

enum {
	QUANTA_MAX = 1 << 28,
	LINE_QUANTA = ARENA_ALIGN_MAX / ARENA_QUANTUM,
	CHUNK_BLOCKS = 64,
	BLOCK_BYTES = 64, /* a cache line of the host */
};

struct block {
	uint32_t offset, size;
	struct block *before, *after; /* neighbours in order of offset; the arena's edge at its ends */
	struct block *next;	      /* of its list, ring or pile; also chains unused entries */
	union {
		struct block **link; /* in a list: what points to it */
		struct block *prev;  /* in a ring or a pile */
	};
	union {
		void *tag;	    /* of a taken one */
		struct block *pile; /* of a leader: the others alike, the first of which has it for `prev` */
	};
	bool taken;			      /* so is an entry without a block */
	bool has_free_before, has_free_after; /* of a taken one: its neighbours */
	bool leads;			      /* of a free one that is odd: it is in a ring */
};

struct arena {
	const struct heap *heap;
	uint32_t size;			   /* in quanta */
	uint64_t free;			   /* in quanta */
	struct block_bitmap starts, sizes; /* lines in which a block starts; sizes of whole free ones */
	struct block **at;		   /* the first that starts in a line; read only where `starts` has it */
	struct block **lists; /* by size in lines; ended by the edge where `sizes` has it, else unset */
	struct odd_blocks odd;
	struct chunk *chunks;
	uint32_t n_chunks;
	struct block *unused;
	uint32_t n_unused;
	uint32_t spare;	   /* unused entries that only arena_release may take */
	struct block edge; /* taken, and past the end */
};

/* What a block has before its first multiple of 2^align_log quanta, which may be past its end. */
static inline uint32_t block_front(const struct block *block, unsigned align_log)
{
	return -block->offset & ((UINT32_C(1) << align_log) - 1);
}

static inline bool block_is_whole(const struct block *block)
{
	return (block->offset | block->size) % LINE_QUANTA == 0;
}

/* A block becomes free. */
static inline void free_blocks_add(struct arena *arena, struct block *block)
{
	block->taken = false;
	block->before->has_free_after = block->after->has_free_before = true;
	if (!block_is_whole(block)) {
		odd_blocks_add(&arena->odd, block);
		return;
	}
	uint32_t lines = block->size / LINE_QUANTA;
	struct block **list = &arena->lists[lines], *next = *list;
	next = block_bitmap_has(&arena->sizes, lines) ? next : &arena->edge;
	block->next = next;
	block->link = list;
	next->link = &block->next;
	*list = block;
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
	*block->link = block->next;
	block->next->link = block->link;
	block_bitmap_remove(&arena->sizes, lines, arena->lists[lines] == &arena->edge);
}

/* A free block that `size` quanta fit into at 2^align_log: the smallest, or one larger by less than a line. NULL
 * where there is none. A whole one that is large enough has its place at its start. */
static inline struct block *free_blocks_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	uint64_t lines = block_bitmap_ceil(&arena->sizes, (size + LINE_QUANTA - 1) / LINE_QUANTA);
	struct block *whole = lines == BLOCK_BITMAP_NONE ? NULL : arena->lists[lines];
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
