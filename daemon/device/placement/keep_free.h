/* Keeps a range of offsets out of what an allocation may take, for the moment. */
#ifndef DEVICE_KEEP_FREE_H
#define DEVICE_KEEP_FREE_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/device.h"

enum { KEEP_FREE_BLOCKS_MAX = 256 }; /* of the arena, in the range */

struct keep_free {
	unsigned n;
	struct arena_extent extents[KEEP_FREE_BLOCKS_MAX];
};

/* Takes what is free of [from, to). False where the range has more blocks than KEEP_FREE_BLOCKS_MAX, or without
 * memory: nothing is taken. */
bool keep_free_begin(struct device *device, int64_t from, int64_t to, struct keep_free *keep);
/* Gives it back. */
void keep_free_end(struct device *device, const struct keep_free *keep);

#endif
