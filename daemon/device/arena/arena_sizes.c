/* Rings and piles, and what is asked of them. A block with a line to spare holds a place wherever it starts: so no
 * question goes through more rings than a line has quanta. */
#include "daemon/device/arena/arena_sizes.h"

static bool is_alike(const struct block *a, const struct block *b)
{
	return a->size == b->size && a->offset % LINE_QUANTA == b->offset % LINE_QUANTA;
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
	struct block *first = arena->rings[arena_sizes_key(block->size)], *leader = first;
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
	struct block **ring = &arena->rings[arena_sizes_key(block->size)], *next = block->next;
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
	if (*ring == block)
		*ring = next;
}

struct block *arena_sizes_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	for (uint64_t key = arena_sizes_key(size);; key++) {
		key = block_bitmap_ceil(&arena->sizes, key);
		if (key == BLOCK_BITMAP_NONE)
			return NULL;
		struct block *leader = arena->rings[key];
		do {
			/* From the pile, that no leader has to be replaced. */
			if (size + arena_sizes_front(leader, align_log) <= leader->size)
				return leader->pile ? leader->pile : leader;
			leader = leader->next;
		} while (leader != arena->rings[key]);
	}
}

/* The largest size of a key. */
static uint32_t last_of(uint64_t key)
{
	uint64_t line = key - (SMALL_QUANTA - SMALL_QUANTA / LINE_QUANTA);
	return (uint32_t)(key < SMALL_QUANTA ? key : line * LINE_QUANTA + LINE_QUANTA - 1);
}

uint32_t arena_sizes_most(const struct arena *arena, unsigned align_log)
{
	uint32_t most = 0;
	uint64_t key = block_bitmap_floor(&arena->sizes, arena_sizes_key(arena->size));
	while (last_of(key) > most) {
		const struct block *leader = arena->rings[key];
		do {
			uint32_t front = arena_sizes_front(leader, align_log);
			if (leader->size > front && leader->size - front > most)
				most = leader->size - front;
			leader = leader->next;
		} while (leader != arena->rings[key]);
		key = block_bitmap_floor(&arena->sizes, key - 1);
	}
	return most;
}
