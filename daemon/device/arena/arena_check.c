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

/* The ring of a key. *n_seen: free blocks, of n_free. */
static const char *check_ring(const struct arena *arena, uint64_t key, uint32_t n_free, uint32_t *n_seen)
{
	const struct block *first = arena->rings[key], *block = first;
	do {
		if (block->taken || !block->leads || arena_sizes_key(block->size) != key)
			return "a block is in a ring it does not belong to";
		if (block->next->prev != block || ++*n_seen > n_free)
			return "a ring is broken";
		for (const struct block *other = first; other != block; other = other->next)
			if (other->size == block->size && (other->offset - block->offset) % LINE_QUANTA == 0)
				return "two piles are alike";
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
	uint64_t key = block_bitmap_ceil(&arena->sizes, 1);
	for (; !wrong && key != BLOCK_BITMAP_NONE; key = block_bitmap_ceil(&arena->sizes, key + 1))
		wrong = check_ring(arena, key, n_free, &n_seen);
	return wrong ? wrong : n_seen == n_free ? NULL : "a free block is in no pile";
}

/* What a line knows of the blocks that start in it, and lines in which none does. */
static const char *check_start(const struct arena *arena, const struct block *block)
{
	uint32_t line = block->offset / LINE_QUANTA;
	uint32_t last = (block->offset + block->size - 1) / LINE_QUANTA;
	bool is_first = line * LINE_QUANTA == block->offset || block->before->offset / LINE_QUANTA != line;
	if (!block_bitmap_has(&arena->starts, line) || (arena->at[line] == block) != is_first)
		return "a line misses the block that starts in it";
	if (block_bitmap_floor(&arena->starts, last) > line &&
	    block_bitmap_floor(&arena->starts, last) != block->after->offset / LINE_QUANTA)
		return "a line has a start inside a block";
	return NULL;
}

const char *arena_check(const struct arena *arena)
{
	uint64_t offset = 0, n_free_quanta = 0;
	uint32_t n_blocks = 0, n_free = 0;
	const struct block *before = &arena->edge, *block = before->after;
	for (; block != &arena->edge; before = block, block = block->after) {
		if (block->offset != offset || block->size == 0)
			return "blocks do not tile the arena";
		if (block->before != before)
			return "a neighbour link is broken";
		const char *wrong = check_start(arena, block);
		if (wrong)
			return wrong;
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
