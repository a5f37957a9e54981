/* What fits where, at each alignment: a tree of maxima over those of the arena's free blocks that do not start at
 * a multiple of the largest. It answers exactly what their sizes cannot, as two blocks of one size differ in what
 * fits into them by where they start. */
#ifndef DEVICE_ARENA_FITS_H
#define DEVICE_ARENA_FITS_H

#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum {
	ARENA_FITS_ALIGNS = 6, /* 1, 2, … 32 quanta */
	ARENA_FITS_WIDTH = 8,  /* children of a node; the lowest have as many block entries */
	ARENA_FITS_LEVELS_MAX = 11,
};

/* The most quanta that fit at each alignment. */
struct arena_fit {
	uint32_t most[ARENA_FITS_ALIGNS];
};

struct arena_fits {
	struct arena_fit *nodes; /* of all levels, the widest first */
	struct arena_fit *level[ARENA_FITS_LEVELS_MAX];
	uint32_t n_nodes[ARENA_FITS_LEVELS_MAX];
	unsigned n_levels;
};

struct arena;
struct block;

/* Makes a tree, all zero at first, that of `n_entries`, a multiple of the width and no fewer than before; the new
 * ones are not free. 0 or -ENOMEM (nothing changed). */
int arena_fits_grow(struct arena_fits *fits, const struct heap *heap, uint32_t n_entries);
void arena_fits_deinit(struct arena_fits *fits, const struct heap *heap);

/* A block that is not aligned has become free; or it was, and is not. One node a level, up to where nothing
 * changes. */
void arena_fits_add(struct arena *arena, const struct block *block);
void arena_fits_remove(struct arena *arena, const struct block *block);

/* The most quanta that fit into any of these at 2^align_log quanta. */
uint32_t arena_fits_most(const struct arena_fits *fits, unsigned align_log);
/* One of these that `size` quanta fit into, or NULL. */
struct block *arena_fits_find(const struct arena *arena, uint32_t size, unsigned align_log);

/* Compares every node with what is below it: NULL, or what is wrong. */
const char *arena_fits_check(const struct arena *arena);

#endif
