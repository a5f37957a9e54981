/* A block with a line to spare holds a place wherever it starts: so no question goes through more rings than a
 * line has quanta. */
#include "daemon/device/arena/odd_blocks.h"

#include <errno.h>

#include "daemon/device/arena/free_blocks.h"

/* The number of the ring that a size belongs to. */
static uint32_t key_of(uint32_t size)
{
	return size < ODD_SMALL ? size : size / ODD_LINE + ODD_SMALL - ODD_SMALL / ODD_LINE;
}

/* The largest size of a key. */
static uint32_t last_of(uint64_t key)
{
	uint64_t line = key - (ODD_SMALL - ODD_SMALL / ODD_LINE);
	return (uint32_t)(key < ODD_SMALL ? key : line * ODD_LINE + ODD_LINE - 1);
}

static bool is_alike(const struct block *a, const struct block *b)
{
	return a->size == b->size && a->offset % ODD_LINE == b->offset % ODD_LINE;
}

int odd_blocks_init(struct odd_blocks *odd, const struct heap *heap, uint32_t size)
{
	odd->last = key_of(size);
	if (block_bitmap_init(&odd->keys, heap, odd->last + 1))
		return -ENOMEM;
	odd->rings = heap_alloc(heap, (odd->last + 1) * sizeof(struct block *));
	return odd->rings ? 0 : -ENOMEM;
}

void odd_blocks_deinit(struct odd_blocks *odd, const struct heap *heap)
{
	block_bitmap_deinit(&odd->keys, heap);
	heap_free(heap, odd->rings);
}

/* ---- rings and piles ---- */

static void join_pile(struct block *leader, struct block *block)
{
	block->leads = false;
	block->prev = leader;
	block->next = leader->pile;
	if (block->next)
		block->next->prev = block;
	leader->pile = block;
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

void odd_blocks_add(struct odd_blocks *odd, struct block *block)
{
	uint32_t key = key_of(block->size);
	bool is_first = !block_bitmap_has(&odd->keys, key);
	struct block *ring = is_first ? block : odd->rings[key], *leader = ring;
	odd->n++;
	for (bool more = !is_first; more; more = leader != ring) {
		if (is_alike(leader, block)) {
			join_pile(leader, block);
			return;
		}
		leader = leader->next;
	}
	block->leads = true;
	block->pile = NULL;
	if (is_first) {
		block->prev = block->next = odd->rings[key] = block;
		block_bitmap_add(&odd->keys, key);
		return;
	}
	block->next = ring;
	block->prev = ring->prev;
	block->prev->next = ring->prev = block;
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

void odd_blocks_remove(struct odd_blocks *odd, struct block *block)
{
	uint32_t key = key_of(block->size);
	struct block *next = block->next;
	odd->n--;
	if (!block->leads) {
		leave_pile(block);
		return;
	}
	if (block->pile) {
		next = replace_leader(block);
	} else if (next == block) {
		block_bitmap_remove(&odd->keys, key, true);
	} else {
		next->prev = block->prev;
		block->prev->next = next;
	}
	if (odd->rings[key] == block)
		odd->rings[key] = next;
}

/* ---- questions ---- */

struct block *odd_blocks_find(const struct odd_blocks *odd, uint32_t size, unsigned align_log)
{
	for (uint64_t key = key_of(size); key <= odd->last; key++) {
		key = block_bitmap_ceil(&odd->keys, key);
		if (key == BLOCK_BITMAP_NONE)
			break;
		struct block *leader = odd->rings[key];
		do {
			/* From the pile, that no leader has to be replaced. */
			if (size + block_front(leader, align_log) <= leader->size)
				return leader->pile ? leader->pile : leader;
			leader = leader->next;
		} while (leader != odd->rings[key]);
	}
	return NULL;
}

uint32_t odd_blocks_most(const struct odd_blocks *odd, unsigned align_log)
{
	uint32_t most = 0;
	uint64_t key = block_bitmap_floor(&odd->keys, odd->last);
	while (key != BLOCK_BITMAP_NONE && last_of(key) > most) {
		const struct block *leader = odd->rings[key];
		do {
			uint32_t front = block_front(leader, align_log);
			if (leader->size > front && leader->size - front > most)
				most = leader->size - front;
			leader = leader->next;
		} while (leader != odd->rings[key]);
		key = block_bitmap_floor(&odd->keys, key - 1);
	}
	return most;
}

/* ---- for tests ---- */

static const char *check_pile(const struct block *leader, uint32_t *n_left)
{
	const struct block *before = leader;
	for (const struct block *block = leader->pile; block; before = block, block = block->next) {
		if (block->taken || block->leads || !is_alike(block, leader))
			return "a block is in a pile it does not belong to";
		if (block->prev != before || !*n_left)
			return "a pile is broken";
		--*n_left;
	}
	return NULL;
}

static const char *check_ring(const struct odd_blocks *odd, uint64_t key, uint32_t *n_left)
{
	const struct block *first = odd->rings[key], *block = first;
	do {
		if (block->taken || !block->leads || key_of(block->size) != key || block_is_whole(block))
			return "a block is in a ring it does not belong to";
		if (block->next->prev != block || !*n_left)
			return "a ring is broken";
		--*n_left;
		for (const struct block *other = first; other != block; other = other->next)
			if (is_alike(other, block))
				return "two piles are alike";
		const char *wrong = check_pile(block, n_left);
		if (wrong)
			return wrong;
		block = block->next;
	} while (block != first);
	return NULL;
}

const char *odd_blocks_check(const struct odd_blocks *odd)
{
	const char *wrong = NULL;
	uint32_t n_left = odd->n;
	for (uint64_t key = 0; !wrong && key <= odd->last; key++) {
		key = block_bitmap_ceil(&odd->keys, key);
		if (key == BLOCK_BITMAP_NONE)
			break;
		wrong = check_ring(odd, key, &n_left);
	}
	return wrong ? wrong : n_left ? "an odd block is in no pile" : NULL;
}
