/* The blocks that tile an arena, and heaps of free ones that are alike: a block is below one with a lower offset.
 */
#ifndef DEVICE_BLOCK_HEAP_H
#define DEVICE_BLOCK_HEAP_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_QUANTA = 32 }; /* what the largest alignment of an allocation spans */

struct block {
	uint32_t offset;
	uint32_t size : 30;
	bool taken : 1;		      /* so is an entry without a block */
	bool leads : 1;		      /* of a free one that is odd: the lowest of those alike */
	struct block *before, *after; /* neighbours in order of offset; the arena's edge at its ends */
	struct block *next;	      /* of a leader: the next one; also chains unused entries */
	union {
		struct block **link; /* of a free one: the pointer to it */
		struct {	     /* of a taken one: its neighbours */
			bool has_free_before, has_free_after;
		};
	};
	union {
		void *tag;	      /* of a taken one */
		struct block *sub[2]; /* of a free one: the heaps below it, all of higher offsets */
	};
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

/* The arena's edge is the empty heap: its offset is above all, and its link may be written to. */
static inline bool block_is_edge(const struct block *block)
{
	return block->offset == UINT32_MAX;
}

/* The part of the function below that is for two heaps that are not empty. */
void block_heap_mix(struct block **link, struct block *a, struct block *b, uint32_t *coin);

/* Makes one heap of two, and has *link point to it: no block is below one with a higher offset. `coin` is any
 * number that the caller keeps. A path goes left or right at random, so that the expected number of steps is
 * logarithmic whatever the order in which blocks become free. */
static inline void block_heap_merge(struct block **link, struct block *a, struct block *b, uint32_t *coin)
{
	if (!block_is_edge(b)) {
		block_heap_mix(link, a, b, coin);
		return;
	}
	*link = a;
	a->link = link;
}

/* Whether `block` and all that is below it belong to the heap of `top` and are in order: NULL, or what is wrong.
 * Takes them off *n_left. For tests. */
const char *block_heap_check(const struct block *block, const struct block *top, uint32_t *n_left);

#endif
