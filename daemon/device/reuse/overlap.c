/* A host has exactly one block of the arena, tagged with it, until it goes; then the parts that guests still hold
 * stay taken without a tag, like those that guests took themselves. Two hosts never meet. */
#include "daemon/device/reuse/overlap.h"

#include <assert.h>
#include <errno.h>

#include "daemon/device/reuse/overlap_count.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/tensors/meetings.h"

struct recount {
	struct device *device;
	const struct tensor *tensor;
	uint32_t n;
	int64_t from, to; /* bytes of others that are not marked yet */
};

/* Guests come in order of offset, and so do hosts, so that ranges grow into each other. */
static bool recount_one(void *ctx, struct tensor *tensor)
{
	struct recount *recount = ctx;
	const struct npumem_place *a = TENSOR_PLACE(recount->tensor), *b = TENSOR_PLACE(tensor);
	int64_t from = a->offset > b->offset ? a->offset : b->offset;
	int64_t to = place_end(a) < place_end(b) ? place_end(a) : place_end(b);
	recount->n++;
	if (from > recount->to || to < recount->from) {
		overlap_count_again(recount->device, recount->from, recount->to);
		recount->from = from;
		recount->to = to;
		return true;
	}
	recount->from = from < recount->from ? from : recount->from;
	recount->to = to > recount->to ? to : recount->to;
	return true;
}

/* Takes the free parts of [from, to); gives them back again up to where it failed. */
static int take_gaps(struct device *device, uint64_t from, uint64_t to, struct tensor *guest)
{
	struct arena_extent extent;
	for (uint64_t at = from; at < to; at = extent.offset + extent.bytes) {
		arena_at(device->arena, at, &extent);
		if (extent.taken)
			continue;
		uint64_t start = extent.offset > at ? extent.offset : at;
		uint64_t end = extent.offset + extent.bytes < to ? extent.offset + extent.bytes : to;
		extent = (struct arena_extent){.offset = start, .bytes = end - start};
		if (arena_reserve(device->arena, start, end - start, guest) == 0)
			continue;
		for (uint64_t back = from; back < start; back = extent.offset + extent.bytes) {
			arena_at(device->arena, back, &extent);
			if (extent.taken && extent.tag == guest)
				arena_release(device->arena, extent.offset, extent.bytes);
		}
		return -ENOMEM;
	}
	return 0;
}

/* Takes the tag off every block in [from, to) that has this one. */
static void untag(struct device *device, uint64_t from, uint64_t to, const struct tensor *tag)
{
	struct arena_extent extent;
	for (uint64_t at = from; at < to; at = extent.offset + extent.bytes) {
		arena_at(device->arena, at, &extent);
		if (extent.taken && extent.tag == tag)
			arena_retag(device->arena, extent.offset, NULL);
	}
}

/* Has the bytes counted again that a coming or going tensor shares with others; the number of those. */
static uint32_t recount_all(struct device *device, const struct tensor *tensor)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	struct recount recount = {.device = device, .tensor = tensor};
	overlap_each(device, place->offset, place->bytes_per_npu, tensor, recount_one, &recount);
	overlap_count_again(device, recount.from, recount.to);
	return recount.n;
}

struct joining {
	struct device *device;
	struct tensor *guest;
};

static bool join_one(void *ctx, struct tensor *other)
{
	const struct joining *joining = ctx;
	return !places_share_offsets(TENSOR_PLACE(joining->guest), TENSOR_PLACE(other)) ||
	       meetings_add(joining->device->heap, joining->guest, other) == 0;
}

/* Links a new guest with all that it meets. 0 or -ENOMEM. */
static int join_all(struct device *device, struct tensor *guest)
{
	struct joining joining = {device, guest};
	if (overlap_each(device, tensor_offset(guest), tensor_bytes_per_npu(guest), guest, join_one, &joining))
		return 0;
	meetings_end(device->heap, guest);
	return -ENOMEM;
}

/* What is kept for guests goes with the last one. */
static void clear_up(struct device *device)
{
	if (!device->guests.root)
		overlap_count_end(device);
}

void overlap_deinit(struct device *device)
{
	overlap_count_end(device);
}

int overlap_enter(struct device *device, struct tensor *guest)
{
	uint64_t from = arena_from(guest), to = arena_to(guest);
	struct tensor_visit *visit = heap_alloc(device->heap, sizeof(*visit));
	if (!visit || overlap_count_begin(device)) {
		heap_free(device->heap, visit);
		return -ENOMEM;
	}
	/* Each pair of tensors cuts at most two blocks when the first of them goes. */
	uint32_t n = recount_all(device, guest), entries = 2 * n + 2;
	if (arena_prepare(device->arena, entries))
		goto no_entries;
	if (join_all(device, guest))
		goto no_links;
	if (take_gaps(device, from, to, guest))
		goto no_gaps;
	untag(device, from, to, guest);
	*visit = (struct tensor_visit){
		.quanta = {.from = from, .to = to, .id = guest->handle}, .guest = guest, .prepared = entries};
	guest->visit = visit;
	intervals_add(&device->guests, &visit->quanta);
	return 0;
no_gaps:
	meetings_end(device->heap, guest);
no_links:
	arena_unprepare(device->arena, entries);
no_entries:
	heap_free(device->heap, visit);
	clear_up(device);
	return -ENOMEM;
}

/* ---- what cannot be moved ---- */

bool overlap_is_immovable(const struct device *device, const struct tensor *tensor)
{
	return tensor->pinned || overlap_any(device, tensor);
}

static void set_immovable(struct device *device, struct tensor *tensor, bool is_immovable)
{
	if (tensor->is_immovable == is_immovable)
		return;
	tensor->is_immovable = is_immovable;
	occupancy_add(&device->immovable, device->options.geometry.npu_bytes, tensor_offset(tensor),
		      tensor_end(tensor), is_immovable ? 1 : -1);
}

static bool recount_immovable(void *ctx, struct tensor *tensor)
{
	struct device *device = ctx;
	set_immovable(device, tensor, overlap_is_immovable(device, tensor));
	return true;
}

void overlap_count_immovable(struct device *device, struct tensor *tensor)
{
	recount_immovable(device, tensor);
	if (device->guests.root)
		overlap_each(device, tensor_offset(tensor), tensor_bytes_per_npu(tensor), tensor,
			     recount_immovable, device);
}

/* ---- leaving ---- */

static void end_visit(struct device *device, struct tensor *guest)
{
	struct tensor_visit *visit = guest->visit;
	arena_unprepare(device->arena, visit->prepared);
	guest->visit = NULL;
	intervals_remove(&device->guests, &visit->quanta);
	heap_free(device->heap, visit);
	clear_up(device);
}

/* Gives back what hosts do not hold of [from, to), which a leaving tensor has and no guest. */
static void release_gap(struct device *device, uint64_t from, uint64_t to, const struct tensor *leaving)
{
	struct arena_extent extent;
	for (uint64_t at = from, end; at < to; at = end) {
		arena_at(device->arena, at, &extent);
		end = extent.offset + extent.bytes < to ? extent.offset + extent.bytes : to;
		if (!extent.tag || extent.tag == leaving)
			arena_release(device->arena, at, end - at);
	}
}

/* Gives back [from, to) of a tensor's range but for what others hold. */
static void release_gaps(struct device *device, uint64_t from, uint64_t to, const struct tensor *leaving)
{
	struct intervals_walk walk;
	uint64_t at = from;
	intervals_begin(&device->guests, from, to, &walk);
	for (const struct interval *quanta; (quanta = intervals_next(&walk));) {
		if (tensor_is_guest(leaving) && quanta == &leaving->visit->quanta)
			continue;
		if (at < quanta->from)
			release_gap(device, at, quanta->from, leaving);
		at = quanta->to > at ? quanta->to : at;
	}
	if (at < to)
		release_gap(device, at, to, leaving);
}

void overlap_settle(struct device *device, struct tensor *tensor)
{
	uint64_t from = arena_from(tensor), to = arena_to(tensor);
	if (!tensor_is_guest(tensor) || overlap_any(device, tensor))
		return;
	/* The cuts at its ends have entries set aside, for when it goes: they are made now. */
	arena_join(device->arena, from, to - from, tensor);
	end_visit(device, tensor);
}

void overlap_settle_all(struct device *device)
{
	struct overlap_cursor cursor = {.guests = true};
	struct tensor *guest;
	while ((guest = overlap_next(device, 0, device->options.geometry.npu_bytes, &cursor)))
		overlap_settle(device, guest);
}

/* The tensors that a leaving one shared quanta with. */
static void settle_neighbours(struct device *device, const struct npumem_place *place)
{
	struct overlap_cursor cursor = {.guests = false};
	struct tensor *other;
	while ((other = overlap_next(device, place->offset, place->bytes_per_npu, &cursor))) {
		recount_immovable(device, other);
		overlap_settle(device, other);
	}
}

void overlap_leave(struct device *device, struct tensor *tensor)
{
	uint64_t from = arena_from(tensor), to = arena_to(tensor);
	set_immovable(device, tensor, false);
	if (!device->guests.root) {
		arena_release(device->arena, from, to - from);
		return;
	}
	recount_all(device, tensor);
	meetings_end(device->heap, tensor);
	release_gaps(device, from, to, tensor);
	untag(device, from, to, tensor);
	if (tensor_is_guest(tensor))
		end_visit(device, tensor);
	settle_neighbours(device, TENSOR_PLACE(tensor));
}
