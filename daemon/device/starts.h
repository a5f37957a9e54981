/* An ordered set of small integers as a 64-ary tree of bitmaps: which offsets a block of the arena starts at.
 * add, remove and "the largest member not above x" cost one word per level, at most five for 2^30. */
#ifndef DEVICE_STARTS_H
#define DEVICE_STARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/heap.h"

enum { STARTS_LEVELS_MAX = 6 };

struct starts {
	const struct heap *heap;
	uint64_t *words; /* all levels, the widest first */
	uint64_t *level[STARTS_LEVELS_MAX];
	unsigned n_levels;
};

/* Members will be below `limit` (> 0, up to 2^32). Empty. 0 or -ENOMEM. */
int starts_init(struct starts *starts, const struct heap *heap, uint64_t limit);
void starts_deinit(struct starts *starts);

void starts_add(struct starts *starts, uint64_t member);
void starts_remove(struct starts *starts, uint64_t member);
bool starts_has(const struct starts *starts, uint64_t member);
/* The largest member <= x. There must be one. */
uint64_t starts_floor(const struct starts *starts, uint64_t x);

#endif
