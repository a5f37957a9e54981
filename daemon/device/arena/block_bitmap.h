/* An ordered set of small integers as a 64-ary tree of bitmaps: which offsets a block of the arena starts at, and
 * which sizes its free blocks have. Every call costs a word or two per level, of which there are five for 2^28.
 *
 * add and remove go through all levels without looking: a branch that saves a word is taken at random, and costs
 * more than the word. Inline, as these few lines are much of what an allocation costs. */
#ifndef DEVICE_BLOCK_BITMAP_H
#define DEVICE_BLOCK_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum { BLOCK_BITMAP_LEVELS_MAX = 6 };

#define BLOCK_BITMAP_NONE UINT64_MAX

struct block_bitmap {
	const struct heap *heap;
	uint64_t *words; /* all levels, the widest first */
	uint64_t *level[BLOCK_BITMAP_LEVELS_MAX];
	unsigned n_levels;
};

/* Members will be below `limit` (> 0, up to 2^32). Empty. 0 or -ENOMEM. */
int block_bitmap_init(struct block_bitmap *bitmap, const struct heap *heap, uint64_t limit);
void block_bitmap_deinit(struct block_bitmap *bitmap);

/* The largest member <= x, or NONE; x is below the limit. */
uint64_t block_bitmap_floor(const struct block_bitmap *bitmap, uint64_t x);

/* The smallest member >= x, or NONE; x is at most the limit. */
static inline uint64_t block_bitmap_ceil(const struct block_bitmap *bitmap, uint64_t x)
{
	for (unsigned k = 0; k < bitmap->n_levels; k++) {
		/* Each level has a word behind its last: x may be one too far. */
		uint64_t word = bitmap->level[k][x / 64] >> x % 64;
		if (word) {
			x += (uint64_t)__builtin_ctzll(word);
			while (k-- > 0)
				x = x * 64 + (uint64_t)__builtin_ctzll(bitmap->level[k][x]);
			return x;
		}
		x = x / 64 + 1;
	}
	return BLOCK_BITMAP_NONE;
}

static inline void block_bitmap_add(struct block_bitmap *bitmap, uint64_t member)
{
	for (unsigned k = 0; k < bitmap->n_levels; k++) {
		bitmap->level[k][member / 64] |= UINT64_C(1) << member % 64;
		member /= 64;
	}
}

static inline void block_bitmap_remove(struct block_bitmap *bitmap, uint64_t member)
{
	uint64_t is_gone = 1;
	for (unsigned k = 0; k < bitmap->n_levels; k++) {
		uint64_t *word = &bitmap->level[k][member / 64];
		*word &= ~(is_gone << member % 64);
		is_gone = *word == 0;
		member /= 64;
	}
}

static inline bool block_bitmap_has(const struct block_bitmap *bitmap, uint64_t member)
{
	return bitmap->level[0][member / 64] >> member % 64 & 1;
}

#endif
