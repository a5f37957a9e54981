/* Rings and piles, and what is asked of them. A block with an alignment's quanta to spare holds a place wherever
 * it starts: so no question goes through more sizes than a line has quanta. */
#include "daemon/device/arena/arena_sizes.h"

static bool is_alike(const struct block *a, const struct block *b)
{
	return a->offset % LINE_QUANTA == b->offset % LINE_QUANTA;
}

static void join_pile(struct block *leader, struct block *block)
{
	block->leads = false;
	block->prev = leader;
	block->next = leader->pile;
	if (block->next)
		block->next->prev = block;
	leader->pile = block;
}

void arena_sizes_join(struct arena *arena, struct block *block)
{
	struct block *first = arena_sizes_first(arena, block->size), *leader = first;
	do {
		if (is_alike(leader, block)) {
			join_pile(leader, block);
			return;
		}
		leader = leader->next;
	} while (leader != first);
	block->leads = true;
	block->pile = NULL;
	block->next = first;
	block->prev = first->prev;
	block->prev->next = first->prev = block;
}

static void leave_pile(struct block *block)
{
	if (block->prev->leads)
		block->prev->pile = block->next;
	else
		block->prev->next = block->next;
	if (block->next)
		block->next->prev = block->prev;
}

/* The first of its pile takes a leader's place in the ring. */
static struct block *replace_leader(struct block *leader)
{
	struct block *heir = leader->pile;
	leave_pile(heir);
	heir->leads = true;
	heir->pile = leader->pile;
	if (heir->pile)
		heir->pile->prev = heir;
	heir->next = leader->next == leader ? heir : leader->next;
	heir->prev = leader->prev == leader ? heir : leader->prev;
	heir->next->prev = heir->prev->next = heir;
	return heir;
}

void arena_sizes_leave(struct arena *arena, struct block *block)
{
	uint32_t *first = &arena->first[arena_sizes_spread(arena, block->size)];
	struct block *next = block->next;
	if (!block->leads) {
		leave_pile(block);
		return;
	}
	if (block->pile) {
		next = replace_leader(block);
	} else {
		next->prev = block->prev;
		block->prev->next = next;
	}
	if (*first == block->index)
		*first = next->index;
}

struct block *arena_sizes_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	for (uint64_t at = size; at <= arena->size && block_bitmap_ceil(&arena->sizes, &at); at++) {
		struct block *first = arena_sizes_first(arena, (uint32_t)at), *leader = first;
		do {
			/* That no leader has to be replaced. */
			if (size + arena_sizes_front(leader, align_log) <= at)
				return leader->pile ? leader->pile : leader;
			leader = leader->next;
		} while (leader != first);
	}
	return NULL;
}

uint32_t arena_sizes_most(const struct arena *arena, unsigned align_log)
{
	uint32_t size = (uint32_t)block_bitmap_floor(&arena->sizes, arena->size), most = 0;
	while (size > most) {
		struct block *first = arena_sizes_first(arena, size), *leader = first;
		do {
			uint32_t front = arena_sizes_front(leader, align_log);
			if (size > front && size - front > most)
				most = size - front;
			leader = leader->next;
		} while (leader != first);
		size = (uint32_t)block_bitmap_floor(&arena->sizes, size - 1);
	}
	return most;
}
