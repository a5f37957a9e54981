/* Tensors slide toward offset 0, in their order, as far as those that stay allow. One walk tells where each block
 * will lie; the moves are made along it, or it is only looked at. */
#include "daemon/device/placement/compact.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/placement/move_bytes.h"
#include "daemon/device/reuse/overlap.h"

/* A block of the arena, and where it will lie. */
struct step {
	struct tensor *tensor; /* NULL: it stays */
	int64_t from, to;      /* new offsets, in quanta */
};

static bool movable(const struct device *device, const struct tensor *tensor)
{
	return tensor && !tensor->pinned && !tensor->placing && !tensor->guest && !overlap_any(device, tensor);
}

/* The next block; false at the end. The block may be moved to where it will lie before the next call. */
static bool walk_next(const struct device *device, struct device_compaction *walk, struct step *step)
{
	struct arena_extent extent;
	if (!arena_at(device->arena, walk->next, &extent))
		return false;
	walk->next = extent.offset + extent.bytes;
	*step = (struct step){.from = (int64_t)extent.offset, .to = (int64_t)walk->next};
	if (!extent.taken) {
		step->from = step->to = walk->end;
		return true;
	}
	if (movable(device, extent.tag)) {
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
	struct device_compaction walk = {.next = 0};
	struct step step;
	/* Without memory for it some guests stay where they are, as they would in device_compact. */
	overlap_settle(device);
	for (bool more = true; more;) {
		int64_t from = walk.end;
		more = walk_next(device, &walk, &step);
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

/* Gives the tensor its new place. 0 or -ENOMEM. */
static int move_place(struct device *device, struct tensor *tensor, int64_t to)
{
	struct npumem_place *place = &tensor->place;
	int64_t from = place->offset;
	/* Giving back a whole block needs no entry, taking a part of a free one two. */
	enum { ENTRIES = 2 };
	if (arena_prepare(device->arena, ENTRIES))
		return -ENOMEM;
	arena_release(device->arena, arena_from(place), arena_to(place) - arena_from(place));
	arena_unprepare(device->arena, ENTRIES);
	shift(device, place, from - to);
	for (struct tensor *view = tensor->views; view; view = view->next_view)
		shift(device, &view->place, from - to);
	if (arena_reserve(device->arena, arena_from(place), arena_to(place) - arena_from(place), tensor))
		assert(!"move_place: the place is free, and entries were set aside");
	return 0;
}

/* Decides moves, and makes them but for their bytes; *n is 0. */
static int decide(struct device *device, struct device_compaction *compaction, bool dry_run,
		  struct device_move *moves, unsigned most, unsigned *n)
{
	struct device_compaction before;
	struct step step;
	for (unsigned looked = 0; looked < most; looked++) {
		before = *compaction;
		if (!walk_next(device, compaction, &step)) {
			compaction->done = true;
			return 0;
		}
		if (!step.tensor)
			continue;
		struct tensor *tensor = step.tensor;
		moves[*n] =
			(struct device_move){tensor, tensor->place.offset, step.from, tensor->place.bytes_per_npu};
		if (!dry_run && move_place(device, tensor, step.from)) {
			*compaction = before;
			return *n ? 0 : -ENOMEM;
		}
		++*n;
	}
	return 0;
}

int device_compact_step(struct device *device, struct device_compaction *compaction, bool dry_run,
			struct device_move *moves, unsigned most, unsigned *n)
{
	*n = 0;
	if (!compaction->next && overlap_settle(device))
		return -ENOMEM;
	if (!dry_run && most > DEVICE_MOVES_MAX)
		most = DEVICE_MOVES_MAX;
	int status = decide(device, compaction, dry_run, moves, most, n);
	if (!dry_run)
		move_bytes_note(device, moves, *n);
	return status;
}

int device_compact(struct device *device, bool dry_run, void (*moved)(void *ctx, const struct device_move *move),
		   void *ctx)
{
	enum { AT_ONCE = 64 };
	struct device_compaction compaction = {.next = 0};
	struct device_move moves[AT_ONCE];
	unsigned n;
	while (!compaction.done) {
		int status = device_compact_step(device, &compaction, dry_run, moves, AT_ONCE, &n);
		if (status)
			return status;
		if (!dry_run)
			device_compact_bytes(device);
		for (unsigned i = 0; moved && i < n; i++)
			moved(ctx, &moves[i]);
	}
	return 0;
}
