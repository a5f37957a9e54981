/* The invariants of the arena, each looked at by itself. */
#include "daemon/device/arena/arena.h"
#include "daemon/device/arena/free_blocks.h"

static const char *check_heaps(const struct arena *arena, uint32_t n_free)
{
	const char *wrong = odd_blocks_check(&arena->odd);
	uint32_t n_left = n_free - arena->odd.n;
	for (uint64_t lines = 0; !wrong && lines <= arena->size / LINE_QUANTA; lines++) {
		lines = block_bitmap_ceil(&arena->sizes, lines);
		if (lines == BLOCK_BITMAP_NONE)
			break;
		const struct block *top = arena->heaps[lines];
		if (block_is_edge(top))
			return "a heap is empty";
		if (top->link != &arena->heaps[lines])
			return "a heap is out of order";
		if (!block_is_whole(top) || top->size != lines * LINE_QUANTA)
			return "a block is in a heap it does not belong to";
		wrong = block_heap_check(top, top, &n_left);
	}
	return wrong ? wrong : n_left ? "a free block is in no heap" : NULL;
}

static const char *check_neighbours(const struct block *block)
{
	if (!block->taken)
		return block->before->taken && block->after->taken ? NULL : "two free neighbours are not merged";
	if (block->has_free_before == block->before->taken || block->has_free_after == block->after->taken)
		return "a block is wrong about its neighbours";
	return NULL;
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
		wrong = wrong ? wrong : check_neighbours(block);
		if (wrong)
			return wrong;
		if (!block->taken) {
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
	return check_heaps(arena, n_free);
}
