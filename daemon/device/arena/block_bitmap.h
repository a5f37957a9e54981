/* An ordered set of small integers as a 64-ary tree of bitmaps: which offsets a block of the arena starts at.
 * add, remove and "the largest member not above x" cost one word per level, at most five for 2^30. */
#ifndef DEVICE_BLOCK_BITMAP_H
#define DEVICE_BLOCK_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum { BLOCK_BITMAP_LEVELS_MAX = 6 };

struct block_bitmap {
	const struct heap *heap;
	uint64_t *words; /* all levels, the widest first */
	uint64_t *level[BLOCK_BITMAP_LEVELS_MAX];
	unsigned n_levels;
};

/* Members will be below `limit` (> 0, up to 2^32). Empty. 0 or -ENOMEM. */
int block_bitmap_init(struct block_bitmap *bitmap, const struct heap *heap, uint64_t limit);
void block_bitmap_deinit(struct block_bitmap *bitmap);

void block_bitmap_add(struct block_bitmap *bitmap, uint64_t member);
void block_bitmap_remove(struct block_bitmap *bitmap, uint64_t member);
bool block_bitmap_has(const struct block_bitmap *bitmap, uint64_t member);
/* The largest member <= x. There must be one. */
uint64_t block_bitmap_floor(const struct block_bitmap *bitmap, uint64_t x);

#endif
