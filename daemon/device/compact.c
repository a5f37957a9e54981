/* Tensors slide toward offset 0, in their order, as far as those that stay allow. */
#include <errno.h>

#include "daemon/device/internal.h"
#include "daemon/device/overlap.h"

static bool stop_at_first(void *ctx, struct tensor *tensor)
{
	(void)ctx;
	(void)tensor;
	return false;
}

static bool movable(const struct device *device, const struct tensor *tensor)
{
	return tensor && !tensor->pinned && !tensor->guest &&
	       overlap_each(device, tensor->place.offset, tensor->place.bytes_per_npu, tensor, stop_at_first,
			    NULL);
}

static void shift(struct device *device, struct npumem_place *place, int64_t by)
{
	place->offset -= by;
	place->address = place->npu * device->options.geometry.npu_bytes + place->offset;
}

static int move_tensor(struct device *device, struct tensor *tensor, int64_t to)
{
	struct npumem_place *place = &tensor->place;
	int64_t from = place->offset;
	/* Giving back a whole block needs no entry and taking a part needs two, which are made sure of first. */
	if (arena_prepare(device->arena, 2))
		return -ENOMEM;
	arena_unprepare(device->arena, 2);
	arena_release(device->arena, arena_from(place), arena_to(place) - arena_from(place));
	if (tensor->touched)
		for (int64_t npu = 0; npu < device->options.geometry.n_npus; npu++)
			local_move_down(&device->local, npu, to, from, place->bytes_per_npu);
	shift(device, place, from - to);
	for (struct tensor *view = tensor->views; view; view = view->next_view)
		shift(device, &view->place, from - to);
	return arena_reserve(device->arena, arena_from(place), arena_to(place) - arena_from(place), tensor);
}

int device_compact(struct device *device, bool dry_run, void (*moved)(void *ctx, const struct device_move *move),
		   void *ctx)
{
	struct arena_extent extent;
	int64_t at = 0;
	for (uint64_t offset = 0; arena_at(device->arena, offset, &extent);
	     offset = extent.offset + extent.bytes) {
		struct tensor *tensor = extent.tag;
		if (!extent.taken)
			continue;
		int64_t end = (int64_t)(extent.offset + extent.bytes);
		if (movable(device, tensor)) {
			int64_t align = tensor->place.align_bytes < ARENA_QUANTUM ? ARENA_QUANTUM
										  : tensor->place.align_bytes;
			struct device_move move = {tensor, tensor->place.offset, (at + align - 1) / align * align,
						   tensor->place.bytes_per_npu};
			if (move.to_offset < move.from_offset) {
				if (!dry_run && move_tensor(device, tensor, move.to_offset))
					return -ENOMEM;
				if (moved)
					moved(ctx, &move);
				end = move.to_offset +
				      (move.bytes_per_npu + ARENA_QUANTUM - 1) / ARENA_QUANTUM * ARENA_QUANTUM;
			}
		}
		at = end;
	}
	return 0;
}
