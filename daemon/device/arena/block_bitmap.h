/* An ordered set of small integers as a 64-ary tree of bitmaps: in which lines a block of the arena starts, and
 * which sizes its free blocks have. Every call costs a word or two per level, of which there are four for 2^23.
 *
 * add and remove always do the two lowest levels: that a word there is the last of its kind happens at random, and
 * the branch would cost more than the word. Above it is rare. Inline, as these few lines are much of what an
 * allocation costs. */
#ifndef DEVICE_BLOCK_BITMAP_H
#define DEVICE_BLOCK_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum { BLOCK_BITMAP_LEVELS_MAX = 6 };

#define BLOCK_BITMAP_NONE UINT64_MAX

struct block_bitmap {
	uint64_t *words; /* all levels, the widest first */
	uint64_t *level[BLOCK_BITMAP_LEVELS_MAX];
	unsigned n_levels;
};

/* Members will be below `limit` (> 0, up to 2^32). Empty. 0 or -ENOMEM. */
int block_bitmap_init(struct block_bitmap *bitmap, const struct heap *heap, uint64_t limit);
void block_bitmap_deinit(struct block_bitmap *bitmap, const struct heap *heap);

/* The largest member <= x, or NONE; x is below the limit. */
uint64_t block_bitmap_floor(const struct block_bitmap *bitmap, uint64_t x);

/* Goes on with block_bitmap_ceil at level 1 and an integer of that. */
uint64_t block_bitmap_climb_ceil(const struct block_bitmap *bitmap, uint64_t x);

/* The smallest member >= x, or NONE; x is at most the limit. */
static inline uint64_t block_bitmap_ceil(const struct block_bitmap *bitmap, uint64_t x)
{
	/* Each level has a word behind its last: x may be one too far. */
	uint64_t word = bitmap->level[0][x / 64] >> x % 64;
	return word ? x + (uint64_t)__builtin_ctzll(word) : block_bitmap_climb_ceil(bitmap, x / 64 + 1);
}

/* The parts of the two functions below that are for the levels from 2 on. */
void block_bitmap_climb_add(struct block_bitmap *bitmap, uint64_t member);
void block_bitmap_climb_remove(struct block_bitmap *bitmap, uint64_t member);

static inline void block_bitmap_add(struct block_bitmap *bitmap, uint64_t member)
{
	uint64_t *word = &bitmap->level[0][member / 64], *above = &bitmap->level[1][member / 64 / 64];
	bool was_empty = !*above;
	*word |= UINT64_C(1) << member % 64;
	*above |= UINT64_C(1) << member / 64 % 64;
	if (was_empty)
		block_bitmap_climb_add(bitmap, member / 64 / 64);
}

/* Only where `is_gone`: to the caller that is not worth a branch either. */
static inline void block_bitmap_remove(struct block_bitmap *bitmap, uint64_t member, bool is_gone)
{
	uint64_t *word = &bitmap->level[0][member / 64], *above = &bitmap->level[1][member / 64 / 64];
	*word &= ~((uint64_t)is_gone << member % 64);
	*above &= ~((uint64_t) !*word << member / 64 % 64);
	if (!*above)
		block_bitmap_climb_remove(bitmap, member / 64 / 64);
}

static inline bool block_bitmap_has(const struct block_bitmap *bitmap, uint64_t member)
{
	return bitmap->level[0][member / 64] >> member % 64 & 1;
}

#endif
