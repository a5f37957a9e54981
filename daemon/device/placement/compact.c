/* Tensors slide toward offset 0, in their order, as far as those that stay allow. One walk tells where each block
 * will lie; the moves are made along it, or it is only looked at. */
#include "daemon/device/placement/compact.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "daemon/device/placement/move_bytes.h"
#include "daemon/device/reuse/overlap.h"

/* A block of the arena, and where it will lie. */
struct step {
	struct tensor *tensor; /* NULL: it stays */
	int64_t from, to;      /* new offsets, in quanta */
};

static bool movable(const struct device *device, const struct tensor *tensor)
{
	return tensor && !tensor->placing && !tensor_is_guest(tensor) && !overlap_is_immovable(device, tensor);
}

static int64_t bytes_of(const struct device *device, const struct tensor *tensor)
{
	return tensor_bytes_per_npu(tensor) * device->options.geometry.n_npus;
}

static bool may_move(const struct device *device, const struct device_compaction *walk,
		     const struct tensor *tensor)
{
	return movable(device, tensor) && (!walk->most_bytes || bytes_of(device, tensor) <= walk->most_bytes);
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
	if (may_move(device, walk, extent.tag)) {
		struct tensor *tensor = extent.tag;
		int64_t align = arena_align((int64_t)tensor->packed.align_bytes),
			to = (walk->end + align - 1) / align * align;
		if (to < tensor_offset(tensor)) {
			step->tensor = tensor;
			step->from = to;
			step->to = to + tensor_bytes_per_npu(tensor);
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
	for (bool more = true; more;) {
		int64_t from = walk.end;
		more = walk_next(device, &walk, &step);
		int64_t to = more ? step.from : device->options.geometry.npu_bytes;
		if (from < to)
			visit(ctx, from, to);
	}
}

static void shift(struct device *device, struct tensor *tensor, int64_t by)
{
	tensor_set_offset(tensor, device->options.geometry.npu_bytes, tensor_offset(tensor) - by);
	device->n_changes++;
}

/* Gives the tensor its new place. 0 or -ENOMEM. */
static int move_place(struct device *device, struct tensor *tensor, int64_t to)
{
	/* Giving back a whole block needs no entry, taking a part of a free one two. */
	enum { ENTRIES = 2 };
	if (arena_prepare(device->arena, ENTRIES))
		return -ENOMEM;
	arena_release(device->arena, arena_from(tensor), arena_to(tensor) - arena_from(tensor));
	arena_unprepare(device->arena, ENTRIES);
	shift(device, tensor, tensor_offset(tensor) - to);
	if (arena_reserve(device->arena, arena_from(tensor), arena_to(tensor) - arena_from(tensor), tensor))
		assert(!"move_place: the place is free, and entries were set aside");
	return 0;
}

/* Decides moves, and makes them but for their bytes; *n is 0. */
static int decide(struct device *device, struct device_compaction *compaction, bool dry_run,
		  struct device_move *moves, unsigned most, unsigned *n)
{
	struct device_compaction before;
	struct step step;
	int64_t bytes = 0, most_bytes = compaction->step_bytes ? compaction->step_bytes : INT64_MAX;
	for (unsigned looked = 0; looked < most && bytes < most_bytes; looked++) {
		before = *compaction;
		if (!walk_next(device, compaction, &step)) {
			compaction->done = true;
			return 0;
		}
		if (!step.tensor)
			continue;
		struct tensor *tensor = step.tensor;
		moves[*n] = (struct device_move){tensor, tensor_offset(tensor), step.from,
						 tensor_bytes_per_npu(tensor)};
		if (!dry_run && move_place(device, tensor, step.from)) {
			*compaction = before;
			return *n ? 0 : -ENOMEM;
		}
		bytes += bytes_of(device, tensor);
		++*n;
	}
	return 0;
}

/* What was free below may be another's now: the walk goes on where its last block ended. */
void device_compact_resume(struct device_compaction *compaction)
{
	compaction->next = (uint64_t)compaction->end;
}

bool device_compact_views(struct device *device, struct device_compaction *compaction,
			  const struct device_move *moves, unsigned n, unsigned most)
{
	for (; compaction->n_followed < n; compaction->n_followed++) {
		const struct device_move *move = &moves[compaction->n_followed];
		struct tensor *view =
			compaction->next_to_follow ? compaction->next_to_follow : tensor_views(move->tensor);
		for (; view && most; view = view->next_view, most--)
			shift(device, view, move->from_offset - move->to_offset);
		compaction->next_to_follow = view;
		if (view)
			return false;
	}
	return true;
}

int device_compact_step(struct device *device, struct device_compaction *compaction, bool dry_run,
			struct device_move *moves, unsigned most, unsigned *n)
{
	*n = 0;
	compaction->n_followed = 0;
	compaction->next_to_follow = NULL;
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
		if (!dry_run) {
			device_compact_views(device, &compaction, moves, n, UINT_MAX);
			device_compact_bytes(device);
		}
		for (unsigned i = 0; moved && i < n; i++)
			moved(ctx, &moves[i]);
	}
	return 0;
}
