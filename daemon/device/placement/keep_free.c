/* Free extents are taken without a tag, like those that guests hold. */
#include "daemon/device/placement/keep_free.h"

#include "daemon/device/internal.h"

/* The free part of a block within [from, to), in quanta. */
static bool free_part(struct arena_extent *extent, uint64_t from, uint64_t to)
{
	uint64_t end = extent->offset + extent->bytes;
	if (extent->taken)
		return false;
	extent->offset = extent->offset > from ? extent->offset : from;
	extent->bytes = (end < to ? end : to) - extent->offset;
	return true;
}

bool keep_free_begin(struct device *device, int64_t from, int64_t to, struct keep_free *keep)
{
	uint64_t first = (uint64_t)from / ARENA_QUANTUM * ARENA_QUANTUM;
	uint64_t last = ((uint64_t)to + ARENA_QUANTUM - 1) / ARENA_QUANTUM * ARENA_QUANTUM, next;
	struct arena_extent extent;
	keep->n = 0;
	for (uint64_t at = first, looks = 0; at < last && arena_at(device->arena, at, &extent); at = next) {
		next = extent.offset + extent.bytes;
		if (++looks <= KEEP_FREE_BLOCKS_MAX && !free_part(&extent, first, last))
			continue;
		if (looks > KEEP_FREE_BLOCKS_MAX ||
		    arena_reserve(device->arena, extent.offset, extent.bytes, NULL)) {
			keep_free_end(device, keep);
			return false;
		}
		keep->extents[keep->n++] = extent;
	}
	return true;
}

void keep_free_end(struct device *device, const struct keep_free *keep)
{
	for (unsigned i = 0; i < keep->n; i++)
		arena_release(device->arena, keep->extents[i].offset, keep->extents[i].bytes);
}
