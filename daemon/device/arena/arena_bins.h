/* The arena's own structs, and its free blocks by size. Blocks tile the arena in order of offset. Free neighbours
 * are always merged, taken ones never. A free block is in the bin of its size; a set bit in the two bitmaps means
 * a non-empty bin. Sizes are in quanta of 4 bytes. Inline, as these few lines are most of what an allocation
 * costs. */
#ifndef DEVICE_ARENA_BINS_H
#define DEVICE_ARENA_BINS_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/arena_fits.h"
#include "daemon/device/arena/block_bitmap.h"

enum {
	SUB_BITS = 5,
	N_SUB = 1 << SUB_BITS,
	N_CLASSES = 25, /* sizes below 2^29 quanta */
	NONE = 0,	/* block 0 is never used, so that zeroed links point nowhere */
	CHUNK_BLOCKS = 64,
	QUANTA_MAX = 1 << 28,
};

struct block {
	uint32_t offset, size;
	uint32_t before, after; /* neighbours in order of offset */
	uint32_t prev, next;	/* in the bin of a free block; `next` also chains unused entries */
	bool taken;		/* so is an entry without a block, and one that is between two bins */
	void *tag;
};

struct arena {
	const struct heap *heap;
	uint32_t size;	       /* in quanta */
	uint64_t free;	       /* in quanta */
	struct block **chunks; /* of CHUNK_BLOCKS entries each */
	uint32_t n_chunks, chunks_room;
	uint32_t unused, n_unused;
	uint32_t spare; /* unused entries that only arena_release may take */
	struct block_bitmap starts;
	uint32_t *at; /* the block that starts at a quantum; read only where `starts` has it */
	uint32_t classes;
	uint32_t subs[N_CLASSES];
	uint32_t bins[N_CLASSES][N_SUB];
	struct arena_fits fits;
};

static inline struct block *block_at(const struct arena *arena, uint32_t index)
{
	return &arena->chunks[index / CHUNK_BLOCKS][index % CHUNK_BLOCKS];
}

struct bin {
	unsigned class, sub;
};

static inline unsigned arena_bins_log2(uint32_t x)
{
	return 31 - (unsigned)__builtin_clz(x);
}

/* The bin that a free block of `size` belongs to: exact below 32 quanta, then 32 steps an octave. */
static inline struct bin arena_bins_of(uint32_t size)
{
	if (size < N_SUB)
		return (struct bin){0, size};
	unsigned log = arena_bins_log2(size);
	return (struct bin){log - SUB_BITS + 1, (size >> (log - SUB_BITS)) - N_SUB};
}

/* The lowest bin whose every block has at least `size`. */
static inline struct bin arena_bins_above(uint32_t size)
{
	if (size >= N_SUB)
		size += (UINT32_C(1) << (arena_bins_log2(size) - SUB_BITS)) - 1;
	return arena_bins_of(size);
}

/* The first non-empty bin at or above `bin`; false where there is none. */
static inline bool arena_bins_find(const struct arena *arena, struct bin *bin)
{
	if (bin->class >= N_CLASSES)
		return false;
	uint32_t subs = arena->subs[bin->class] & (UINT32_MAX << bin->sub);
	if (!subs) {
		uint32_t classes = arena->classes & (uint32_t)(UINT64_MAX << (bin->class + 1));
		if (!classes)
			return false;
		bin->class = (unsigned)__builtin_ctz(classes);
		subs = arena->subs[bin->class];
	}
	bin->sub = (unsigned)__builtin_ctz(subs);
	return true;
}

static inline void arena_bins_push(struct arena *arena, uint32_t index)
{
	struct block *block = block_at(arena, index);
	struct bin bin = arena_bins_of(block->size);
	uint32_t *head = &arena->bins[bin.class][bin.sub];
	block->taken = false;
	block->tag = NULL;
	block->prev = NONE;
	block->next = *head;
	if (*head)
		block_at(arena, *head)->prev = index;
	*head = index;
	arena->subs[bin.class] |= UINT32_C(1) << bin.sub;
	arena->classes |= UINT32_C(1) << bin.class;
	arena->free += block->size;
	arena_fits_add(arena, index);
}

static inline void arena_bins_remove(struct arena *arena, uint32_t index)
{
	struct block *block = block_at(arena, index);
	struct bin bin = arena_bins_of(block->size);
	if (block->prev)
		block_at(arena, block->prev)->next = block->next;
	else
		arena->bins[bin.class][bin.sub] = block->next;
	if (block->next)
		block_at(arena, block->next)->prev = block->prev;
	if (!arena->bins[bin.class][bin.sub]) {
		arena->subs[bin.class] &= ~(UINT32_C(1) << bin.sub);
		if (!arena->subs[bin.class])
			arena->classes &= ~(UINT32_C(1) << bin.class);
	}
	arena->free -= block->size;
	block->taken = true;
	arena_fits_remove(arena, index);
}

#endif
