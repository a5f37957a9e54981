/* Tensors slide toward offset 0, in their order, as far as those that stay allow. One walk tells where each block
 * will lie; the moves are made along it, or it is only looked at. */
#include "daemon/device/compact.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/overlap.h"

/* A block of the arena, and where it will lie. */
struct step {
	struct tensor *tensor; /* NULL: it stays */
	int64_t from, to;      /* new offsets, in quanta */
};

struct walk {
	const struct device *device;
	uint64_t next;
	int64_t end; /* of the block before, as it will lie */
};

static bool movable(const struct device *device, const struct tensor *tensor)
{
	return tensor && !tensor->pinned && !tensor->guest && !overlap_any(device, tensor);
}

/* The next block that is taken; false at the end. The block may be moved to where it will lie before the next
 * call. */
static bool walk_next(struct walk *walk, struct step *step)
{
	struct arena_extent extent;
	do {
		if (!arena_at(walk->device->arena, walk->next, &extent))
			return false;
		walk->next = extent.offset + extent.bytes;
	} while (!extent.taken);
	*step = (struct step){.from = (int64_t)extent.offset, .to = (int64_t)walk->next};
	if (movable(walk->device, extent.tag)) {
		struct tensor *tensor = extent.tag;
		int64_t align = arena_align(&tensor->place), to = (walk->end + align - 1) / align * align;
		if (to < tensor->place.offset) {
			step->tensor = tensor;
			step->from = to;
			step->to = to + tensor->place.bytes_per_npu;
			step->to = (step->to + ARENA_QUANTUM - 1) / ARENA_QUANTUM * ARENA_QUANTUM;
		}
	}
	walk->end = step->to;
	return true;
}

void compact_each_gap(struct device *device, void (*visit)(void *ctx, int64_t from, int64_t to), void *ctx)
{
	struct walk walk = {.device = device};
	struct step step;
	/* Without memory for it some guests stay where they are, as they would in device_compact. */
	overlap_settle(device);
	for (bool more = true; more;) {
		int64_t from = walk.end;
		more = walk_next(&walk, &step);
		int64_t to = more ? step.from : device->options.geometry.npu_bytes;
		if (from < to)
			visit(ctx, from, to);
	}
}

static void shift(struct device *device, struct npumem_place *place, int64_t by)
{
	place->offset -= by;
	place->address = place->npu * device->options.geometry.npu_bytes + place->offset;
}

static void move_tensor(struct device *device, struct tensor *tensor, int64_t to)
{
	struct npumem_place *place = &tensor->place;
	int64_t from = place->offset;
	arena_release(device->arena, arena_from(place), arena_to(place) - arena_from(place));
	if (tensor->touched)
		for (int64_t npu = 0; npu < device->options.geometry.n_npus; npu++)
			local_move_down(&device->local, npu, to, from, place->bytes_per_npu);
	shift(device, place, from - to);
	for (struct tensor *view = tensor->views; view; view = view->next_view)
		shift(device, &view->place, from - to);
	if (arena_reserve(device->arena, arena_from(place), arena_to(place) - arena_from(place), tensor))
		assert(!"move_tensor: the place is free, and entries were set aside");
}

/* Sets aside what the moves may take: giving back a whole block needs no entry, taking a part of a free one two.
 */
static int prepare(struct device *device)
{
	struct walk walk = {.device = device};
	struct step step;
	uint32_t entries = 2;
	while (walk_next(&walk, &step))
		entries += step.tensor ? 2 : 0;
	if (arena_prepare(device->arena, entries))
		return -ENOMEM;
	arena_unprepare(device->arena, entries);
	return 0;
}

int device_compact(struct device *device, bool dry_run, void (*moved)(void *ctx, const struct device_move *move),
		   void *ctx)
{
	struct walk walk = {.device = device};
	struct step step;
	if (overlap_settle(device) || (!dry_run && prepare(device)))
		return -ENOMEM;
	while (walk_next(&walk, &step)) {
		if (!step.tensor)
			continue;
		struct device_move move = {step.tensor, step.tensor->place.offset, step.from,
					   step.tensor->place.bytes_per_npu};
		if (!dry_run)
			move_tensor(device, step.tensor, step.from);
		if (moved)
			moved(ctx, &move);
	}
	return 0;
}
