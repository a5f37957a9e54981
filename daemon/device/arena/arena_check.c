/* The invariants of the arena, each looked at by itself. */
#include "daemon/device/arena/arena_sizes.h"

static const char *check_pile(const struct block *leader, uint32_t n_free, uint32_t *n_seen)
{
	const struct block *before = leader;
	for (const struct block *block = leader->pile; block; before = block, block = block->next) {
		if (block->taken || block->leads || block->size != leader->size ||
		    (block->offset - leader->offset) % LINE_QUANTA)
			return "a block is in a pile it does not belong to";
		if (block->prev != before || ++*n_seen > n_free)
			return "a pile is broken";
	}
	return NULL;
}

/* The ring of a size. *n_seen: free blocks, of n_free. */
static const char *check_ring(const struct arena *arena, uint32_t size, uint32_t n_free, uint32_t *n_seen)
{
	const struct block *first = arena_sizes_first(arena, size), *block = first;
	uint32_t starts = 0;
	do {
		uint32_t start = UINT32_C(1) << block->offset % LINE_QUANTA;
		if (block->taken || !block->leads || block->size != size)
			return "a block is in a ring it does not belong to";
		if (block->next->prev != block || ++*n_seen > n_free)
			return "a ring is broken";
		if (starts & start)
			return "two piles are alike";
		starts |= start;
		const char *wrong = check_pile(block, n_free, n_seen);
		if (wrong)
			return wrong;
		block = block->next;
	} while (block != first);
	return NULL;
}

static const char *check_sizes(const struct arena *arena, uint32_t n_free)
{
	const char *wrong = NULL;
	uint32_t n_seen = 0;
	uint64_t size = 1;
	for (; !wrong && size <= arena->size && block_bitmap_ceil(&arena->sizes, &size); size++)
		wrong = check_ring(arena, (uint32_t)size, n_free, &n_seen);
	return wrong ? wrong : n_seen == n_free ? NULL : "a free block is in no pile";
}

const char *arena_check(const struct arena *arena)
{
	uint64_t offset = 0, n_free_quanta = 0;
	uint32_t n_blocks = 0, n_free = 0;
	const struct block *before = &arena->edge, *block = before->after;
	for (; block != &arena->edge; before = block, block = block->after) {
		if (block->offset != offset || block->size == 0)
			return "blocks do not tile the arena";
		if (block->before != before || block_at(arena, block->index) != block)
			return "a neighbour link is broken";
		if (!block_bitmap_has(&arena->starts, offset) ||
		    arena->at[arena_sizes_spread(arena, block->offset)] != block->index)
			return "the index misses a block";
		if (block_bitmap_floor(&arena->starts, block->offset + block->size - 1) != block->offset)
			return "the index has a start inside a block";
		if (!block->taken) {
			if (!before->taken)
				return "two free neighbours are not merged";
			n_free++;
			n_free_quanta += block->size;
		}
		offset += block->size;
		if (++n_blocks > arena->size)
			return "the neighbour list has a loop";
	}
	if (offset != arena->size || arena->edge.before != before)
		return "blocks do not reach the end";
	if (n_free_quanta != arena->free)
		return "the free count is wrong";
	if (n_blocks + arena->n_unused != arena->n_chunks * CHUNK_BLOCKS)
		return "block entries are lost";
	return check_sizes(arena, n_free);
}
