/* Hosts are found by the arena's tags, guests by the device's set of them, which is empty unless somebody asked
 * for reuse. */
#include "daemon/device/reuse/overlap_walk.h"

#include <stddef.h>

static struct tensor *tensor_of(struct interval *quanta)
{
	return ((struct tensor_visit *)(void *)((char *)quanta - offsetof(struct tensor_visit, quanta)))->guest;
}

/* The next guest of a walk, in order of offset; NULL: there is none. */
static struct tensor *next_guest(struct intervals_walk *walk)
{
	struct interval *visit = intervals_next(walk);
	return visit ? tensor_of(visit) : NULL;
}

bool overlap_each(const struct device *device, int64_t offset, int64_t bytes, const struct tensor *except,
		  bool (*visit)(void *ctx, struct tensor *tensor), void *ctx)
{
	uint64_t from = (uint64_t)offset, to = (uint64_t)(offset + bytes);
	struct arena_extent extent = {.offset = from};
	struct intervals_walk walk;
	struct tensor *guest;
	for (; extent.offset < to; extent.offset += extent.bytes) {
		if (!arena_at(device->arena, extent.offset, &extent))
			break;
		struct tensor *tensor = extent.tag;
		if (tensor && tensor != except && !visit(ctx, tensor))
			return false;
	}
	intervals_begin(&device->guests, from, to, &walk);
	while ((guest = next_guest(&walk)))
		if (guest != except && !visit(ctx, guest))
			return false;
	return true;
}

struct tensor *overlap_next(const struct device *device, int64_t offset, int64_t bytes,
			    struct overlap_cursor *cursor)
{
	uint64_t from = (uint64_t)offset, to = (uint64_t)(offset + bytes);
	struct arena_extent extent;
	if (cursor->offset < from)
		cursor->offset = from;
	while (!cursor->guests && cursor->offset < to && arena_at(device->arena, cursor->offset, &extent)) {
		cursor->offset = extent.offset + extent.bytes;
		if (extent.tag)
			return extent.tag;
	}
	cursor->guests = true;
	struct interval *visit = intervals_after(&device->guests, from, to, cursor->guest_from, cursor->guest_id);
	if (!visit)
		return NULL;
	cursor->guest_from = visit->from;
	cursor->guest_id = visit->id;
	return tensor_of(visit);
}

static bool stop(void *ctx, struct tensor *tensor)
{
	(void)ctx;
	(void)tensor;
	return false;
}

bool overlap_any(const struct device *device, const struct tensor *tensor)
{
	struct intervals_walk walk;
	if (tensor_is_guest(tensor))
		return !overlap_each(device, tensor_offset(tensor), tensor_bytes_per_npu(tensor), tensor, stop,
				     NULL);
	/* Two hosts never meet. */
	intervals_begin(&device->guests, arena_from(tensor), arena_to(tensor), &walk);
	return intervals_next(&walk);
}

struct tensor *overlap_first(const struct device *device, const struct npumem_place *place)
{
	uint64_t to = (uint64_t)place_end(place);
	struct arena_extent extent = {.offset = (uint64_t)place->offset};
	struct tensor *first = NULL, *guest;
	struct intervals_walk walk;
	for (; !first && extent.offset < to && arena_at(device->arena, extent.offset, &extent);
	     extent.offset += extent.bytes)
		if (extent.tag && places_share_offsets(TENSOR_PLACE(((struct tensor *)extent.tag)), place))
			first = extent.tag;
	/* Several may start in the same quantum, in any order. */
	intervals_begin(&device->guests, (uint64_t)place->offset, to, &walk);
	while ((guest = next_guest(&walk)) &&
	       !(first && (int64_t)guest->visit->quanta.from >= tensor_offset(first)))
		if (places_share_offsets(TENSOR_PLACE(guest), place) &&
		    (!first || tensor_offset(guest) < tensor_offset(first)))
			first = guest;
	return first;
}
