/* Skew heaps that go left or right by chance instead of always. */
#include "daemon/device/arena/block_heap.h"

#include <stddef.h>

void block_heap_mix(struct block **link, struct block *a, struct block *b, uint32_t *coin)
{
	while (!block_is_edge(b)) {
		bool is_below = b->offset < a->offset;
		struct block *top = is_below ? b : a;
		b = is_below ? a : b;
		*link = top;
		top->link = link;
		*coin = *coin * 1664525 + 1013904223;
		link = &top->sub[*coin >> 31];
		a = *link;
	}
	*link = a;
	a->link = link;
}

const char *block_heap_check(const struct block *block, const struct block *top, uint32_t *n_left)
{
	bool is_whole = block_is_whole(block), is_sub = block != top;
	if (block->taken || block->size != top->size || is_whole != block_is_whole(top) ||
	    block->offset % LINE_QUANTA != top->offset % LINE_QUANTA || (is_sub && !is_whole && block->leads))
		return "a block is in a heap it does not belong to";
	if (!*n_left)
		return "a heap has too many blocks";
	--*n_left;
	for (unsigned i = 0; i < 2; i++) {
		const struct block *sub = block->sub[i];
		if (block_is_edge(sub))
			continue;
		if (sub->link != &block->sub[i] || sub->offset < block->offset)
			return "a heap is out of order";
		const char *wrong = block_heap_check(sub, top, n_left);
		if (wrong)
			return wrong;
	}
	return NULL;
}
