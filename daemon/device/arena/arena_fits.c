/* Invariant: a node has the maxima of its children, and the lowest those of their entries that are free. Adding
 * can only raise a maximum; removing looks again only where what goes was one. */
#include "daemon/device/arena/arena_fits.h"

#include <errno.h>

#include "daemon/device/arena/arena_sizes.h"

static uint32_t parents_of(uint32_t n)
{
	return (n + ARENA_FITS_WIDTH - 1) / ARENA_FITS_WIDTH;
}

/* The last node of a level may lack children: all levels are padded to whole nodes. */
static uint32_t padded(uint32_t n)
{
	return parents_of(n) * ARENA_FITS_WIDTH;
}

int arena_fits_grow(struct arena_fits *fits, const struct heap *heap, uint32_t n_entries)
{
	const struct arena_fits old = *fits;
	struct arena_fits grown = {.n_levels = 0};
	uint32_t total = 0;
	for (uint32_t n = n_entries; n > 1; n = parents_of(n))
		total += padded(parents_of(n));
	grown.nodes = heap_zalloc(heap, total, sizeof(*grown.nodes));
	if (!grown.nodes)
		return -ENOMEM;
	struct arena_fit *at = grown.nodes;
	for (uint32_t n = n_entries; n > 1; n = parents_of(n)) {
		unsigned level = grown.n_levels++;
		grown.level[level] = at;
		at += padded(parents_of(n));
		/* A node has the same index in both; above the old root, all that is there is below the first. */
		if (level < old.n_levels)
			memcpy(grown.level[level], old.level[level], old.n_nodes[level] * sizeof(*at));
		else if (old.n_levels)
			*grown.level[level] = *old.level[old.n_levels - 1];
		grown.n_nodes[level] = parents_of(n);
	}
	heap_free(heap, old.nodes);
	*fits = grown;
	return 0;
}

void arena_fits_deinit(struct arena_fits *fits, const struct heap *heap)
{
	heap_free(heap, fits->nodes);
	fits->nodes = NULL;
}

/* Nothing fits into what is taken, or no block at all; and what is aligned is not this tree's. */
static struct arena_fit fit_of(const struct block *block)
{
	struct arena_fit fit = {{0}};
	if (block->taken || block_is_aligned(block))
		return fit;
	for (unsigned i = 0; i < ARENA_FITS_ALIGNS; i++) {
		uint32_t front = -block->offset & ((UINT32_C(1) << i) - 1);
		fit.most[i] = front < block->size ? block->size - front : 0;
	}
	return fit;
}

/* Returns whether that changed it. */
static bool raise(struct arena_fit *node, const struct arena_fit *fit)
{
	bool changed = false;
	for (unsigned i = 0; i < ARENA_FITS_ALIGNS; i++) {
		if (fit->most[i] > node->most[i]) {
			node->most[i] = fit->most[i];
			changed = true;
		}
	}
	return changed;
}

/* What a node must have: of the entries below it, or of the nodes. */
static struct arena_fit node_of(const struct arena *arena, unsigned level, uint32_t index)
{
	struct arena_fit node = {{0}};
	for (uint32_t i = index * ARENA_FITS_WIDTH; i < (index + 1) * ARENA_FITS_WIDTH; i++) {
		struct arena_fit fit = level ? arena->fits.level[level - 1][i] : fit_of(block_at(arena, i));
		raise(&node, &fit);
	}
	return node;
}

void arena_fits_add(struct arena *arena, const struct block *block)
{
	const struct arena_fit fit = fit_of(block);
	uint32_t index = block->index;
	for (unsigned level = 0; level < arena->fits.n_levels; level++) {
		index /= ARENA_FITS_WIDTH;
		if (!raise(&arena->fits.level[level][index], &fit))
			return;
	}
}

void arena_fits_remove(struct arena *arena, const struct block *block)
{
	struct block was = *block;
	was.taken = false;
	const struct arena_fit gone = fit_of(&was);
	uint32_t index = block->index;
	for (unsigned level = 0; level < arena->fits.n_levels; level++) {
		index /= ARENA_FITS_WIDTH;
		struct arena_fit *node = &arena->fits.level[level][index];
		bool was_most = false;
		for (unsigned i = 0; i < ARENA_FITS_ALIGNS; i++)
			was_most |= gone.most[i] && gone.most[i] == node->most[i];
		if (!was_most)
			return;
		const struct arena_fit now = node_of(arena, level, index);
		if (memcmp(node, &now, sizeof(now)) == 0)
			return;
		*node = now;
	}
}

uint32_t arena_fits_most(const struct arena_fits *fits, unsigned align_log)
{
	return fits->level[fits->n_levels - 1]->most[align_log];
}

struct block *arena_fits_find(const struct arena *arena, uint32_t size, unsigned align_log)
{
	const struct arena_fits *fits = &arena->fits;
	uint32_t index = 0;
	if (arena_fits_most(fits, align_log) < size)
		return NULL;
	/* One child of each has what the node says. */
	for (unsigned level = fits->n_levels - 1; level > 0; level--) {
		index *= ARENA_FITS_WIDTH;
		while (fits->level[level - 1][index].most[align_log] < size)
			index++;
	}
	index *= ARENA_FITS_WIDTH;
	while (fit_of(block_at(arena, index)).most[align_log] < size)
		index++;
	return block_at(arena, index);
}

const char *arena_fits_check(const struct arena *arena)
{
	const struct arena_fits *fits = &arena->fits;
	for (unsigned level = 0; level < fits->n_levels; level++) {
		uint32_t n = level ? fits->n_nodes[level] : arena->n_chunks * CHUNK_BLOCKS / ARENA_FITS_WIDTH;
		for (uint32_t i = 0; i < n; i++) {
			struct arena_fit node = node_of(arena, level, i);
			if (memcmp(&node, &fits->level[level][i], sizeof(node)))
				return "a node has not the maxima of what is below it";
		}
	}
	return NULL;
}
