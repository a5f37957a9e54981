/* A block with a line to spare holds a place wherever it starts: so no question goes through more lists than a
 * line has quanta. */
#include "daemon/device/arena/odd_blocks.h"

#include <errno.h>

/* The number of the list that a size belongs to. */
static uint32_t key_of(uint32_t size)
{
	return size < ODD_SMALL ? size : size / LINE_QUANTA + ODD_SMALL - ODD_SMALL / LINE_QUANTA;
}

/* The largest size of a key. */
static uint32_t last_of(uint64_t key)
{
	uint64_t line = key - (ODD_SMALL - ODD_SMALL / LINE_QUANTA);
	return (uint32_t)(key < ODD_SMALL ? key : line * LINE_QUANTA + LINE_QUANTA - 1);
}

/* Equal for blocks that are alike, and the order of leaders. */
static uint64_t kind_of(const struct block *block)
{
	return (uint64_t)block->size * LINE_QUANTA + block->offset % LINE_QUANTA;
}

int odd_blocks_init(struct odd_blocks *odd, const struct heap *heap, uint32_t size)
{
	odd->last = key_of(size);
	if (block_bitmap_init(&odd->keys, heap, odd->last + 1))
		return -ENOMEM;
	odd->leaders = heap_alloc(heap, (odd->last + 1) * sizeof(struct block *));
	return odd->leaders ? 0 : -ENOMEM;
}

void odd_blocks_deinit(struct odd_blocks *odd, const struct heap *heap)
{
	block_bitmap_deinit(&odd->keys, heap);
	heap_free(heap, odd->leaders);
}

/* ---- lists and heaps ---- */

/* The block that *link points to leads, before `next`, if it is one. */
static void lead(struct block **link, struct block *next)
{
	if (!block_is_edge(*link)) {
		(*link)->leads = true;
		(*link)->link = link;
		link = &(*link)->next;
	}
	*link = next;
	if (next)
		next->link = link;
}

void odd_blocks_add(struct odd_blocks *odd, struct block *block)
{
	uint32_t key = key_of(block->size);
	uint64_t kind = kind_of(block);
	struct block **link = &odd->leaders[key];
	odd->n++;
	block->leads = false;
	if (!block_bitmap_has(&odd->keys, key))
		*link = NULL;
	block_bitmap_add(&odd->keys, key);
	while (*link && kind_of(*link) < kind)
		link = &(*link)->next;
	struct block *leader = *link, *next = leader;
	if (leader && kind_of(leader) == kind) {
		next = leader->next;
		leader->leads = false;
		block_heap_merge(link, leader, block, &odd->coin);
	} else {
		*link = block;
	}
	lead(link, next);
}

void odd_blocks_remove(struct odd_blocks *odd, struct block *block)
{
	uint32_t key = key_of(block->size);
	struct block **link = block->link;
	odd->n--;
	block_heap_merge(link, block->sub[0], block->sub[1], &odd->coin);
	if (block->leads)
		lead(link, block->next);
	block_bitmap_remove(&odd->keys, key, !odd->leaders[key]);
}

/* ---- questions ---- */

struct block *odd_blocks_find(const struct odd_blocks *odd, uint32_t size, unsigned align_log)
{
	for (uint64_t key = key_of(size); key <= odd->last; key++) {
		key = block_bitmap_ceil(&odd->keys, key);
		if (key == BLOCK_BITMAP_NONE)
			break;
		for (struct block *leader = odd->leaders[key]; leader; leader = leader->next)
			if (size + block_front(leader, align_log) <= leader->size)
				return leader;
	}
	return NULL;
}

uint32_t odd_blocks_most(const struct odd_blocks *odd, unsigned align_log)
{
	uint32_t most = 0;
	uint64_t key = block_bitmap_floor(&odd->keys, odd->last);
	while (key != BLOCK_BITMAP_NONE && last_of(key) > most) {
		for (const struct block *leader = odd->leaders[key]; leader; leader = leader->next) {
			uint32_t front = block_front(leader, align_log);
			if (leader->size > front && leader->size - front > most)
				most = leader->size - front;
		}
		key = block_bitmap_floor(&odd->keys, key - 1);
	}
	return most;
}

/* ---- for tests ---- */

static const char *check_key(const struct odd_blocks *odd, uint64_t key, uint32_t *n_left)
{
	struct block *const *link = &odd->leaders[key];
	const char *wrong = NULL;
	if (!*link)
		return "a key has no blocks";
	for (const struct block *leader = *link, *last = NULL; leader && !wrong; leader = *link) {
		if (!leader->leads || leader->link != link || (last && kind_of(last) >= kind_of(leader)))
			return "leaders are out of order";
		if (block_is_whole(leader) || key_of(leader->size) != key)
			return "a block is in a list it does not belong to";
		wrong = block_heap_check(leader, leader, n_left);
		last = leader;
		link = &last->next;
	}
	return wrong;
}

const char *odd_blocks_check(const struct odd_blocks *odd)
{
	const char *wrong = NULL;
	uint32_t n_left = odd->n;
	for (uint64_t key = 0; !wrong && key <= odd->last; key++) {
		key = block_bitmap_ceil(&odd->keys, key);
		if (key == BLOCK_BITMAP_NONE)
			break;
		wrong = check_key(odd, key, &n_left);
	}
	return wrong ? wrong : n_left ? "an odd block is in no heap" : NULL;
}
