/* The invariants of the arena, each looked at by itself. */
#include "daemon/device/arena/arena_bins.h"

static const char *check_bins(const struct arena *arena, uint32_t n_free)
{
	uint32_t seen = 0;
	for (unsigned octave = 0; octave < N_CLASSES; octave++) {
		if (!!arena->subs[octave] != (arena->classes >> octave & 1))
			return "a class bit differs from its bins";
		for (unsigned sub = 0; sub < N_SUB; sub++) {
			uint32_t head = arena->bins[octave][sub], before = NONE;
			if (!!head != (arena->subs[octave] >> sub & 1))
				return "a bin bit differs from its list";
			for (uint32_t i = head; i; before = i, i = block_at(arena, i)->next) {
				struct bin bin = arena_bins_of(block_at(arena, i)->size);
				if (block_at(arena, i)->taken || bin.class != octave || bin.sub != sub)
					return "a block is in a bin it does not belong to";
				if (block_at(arena, i)->prev != before || ++seen > n_free)
					return "a bin's list is broken";
			}
		}
	}
	return seen == n_free ? NULL : "a free block is in no bin";
}

const char *arena_check(const struct arena *arena)
{
	uint64_t offset = 0, n_free_quanta = 0;
	uint32_t n_blocks = 0, n_free = 0, before = NONE;
	for (uint32_t i = arena->at[0]; i; before = i, i = block_at(arena, i)->after) {
		const struct block *block = block_at(arena, i);
		if (block->offset != offset || block->size == 0)
			return "blocks do not tile the arena";
		if (block->before != before)
			return "a neighbour link is broken";
		if (!block_bitmap_has(&arena->starts, block->offset) || arena->at[block->offset] != i)
			return "the index misses a block";
		if (block_bitmap_floor(&arena->starts, block->offset + block->size - 1) != block->offset)
			return "the index has a start inside a block";
		if (!block->taken) {
			if (before && !block_at(arena, before)->taken)
				return "two free neighbours are not merged";
			n_free++;
			n_free_quanta += block->size;
		}
		offset += block->size;
		if (++n_blocks > arena->size)
			return "the neighbour list has a loop";
	}
	if (offset != arena->size)
		return "blocks do not reach the end";
	if (n_free_quanta != arena->free)
		return "the free count is wrong";
	if (n_blocks + arena->n_unused + 1 != arena->n_chunks * CHUNK_BLOCKS)
		return "block entries are lost";
	const char *wrong = check_bins(arena, n_free);
	return wrong ? wrong : arena_fits_check(arena);
}
