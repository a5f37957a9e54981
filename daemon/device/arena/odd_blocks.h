/* The arena's free blocks that are not of whole lines, by size.
 *
 * What fits into a block follows from its size and from where it starts within a line. Those alike in both are a
 * heap, and the lowest of them is its leader. The leaders of one size are a list, from 32 lines on of all sizes of
 * as many whole lines, in order of size and of where they start within a line: at most LINE_QUANTA leaders of
 * small blocks, and its square of large ones. `keys` has the keys of the lists that there are. So every question
 * looks at a bounded number of blocks, however many there are. */
#ifndef DEVICE_ODD_BLOCKS_H
#define DEVICE_ODD_BLOCKS_H

#include "daemon/device/arena/block_bitmap.h"
#include "daemon/device/arena/block_heap.h"

enum { ODD_SMALL = 32 * LINE_QUANTA };

struct odd_blocks {
	struct block_bitmap keys;
	struct block **leaders; /* the first of a key; read only where `keys` has it */
	uint32_t n;
	uint32_t coin; /* block_heap_merge's */
	uint32_t last; /* key of all sizes */
};

/* Blocks will have up to `size` quanta. 0 or -ENOMEM; to be deinitialised in either case. */
int odd_blocks_init(struct odd_blocks *odd, const struct heap *heap, uint32_t size);
void odd_blocks_deinit(struct odd_blocks *odd, const struct heap *heap);

/* A block becomes free, with nothing below it; or it was, and is not any more or about to change. */
void odd_blocks_add(struct odd_blocks *odd, struct block *block);
void odd_blocks_remove(struct odd_blocks *odd, struct block *block);

/* One that `size` quanta fit into at 2^align_log: the smallest, or one larger by less than a line. NULL where
 * there is none. */
struct block *odd_blocks_find(const struct odd_blocks *odd, uint32_t size, unsigned align_log);
/* The most quanta that fit into any at 2^align_log. */
uint32_t odd_blocks_most(const struct odd_blocks *odd, unsigned align_log);

/* Whether lists, heaps and keys agree: NULL, or what is wrong. For tests. */
const char *odd_blocks_check(const struct odd_blocks *odd);

#endif
