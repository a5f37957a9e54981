/* A host has exactly one block of the arena, tagged with it, until it goes; then the parts that guests still hold
 * stay taken without a tag, like those that guests took themselves. Two hosts never meet. */
#include "daemon/device/overlap.h"

#include <assert.h>
#include <errno.h>

static bool holds(const struct tensor *tensor, int64_t offset, int64_t bytes)
{
	/* In quanta: what shares only a quantum shares it in the arena, too. */
	return (int64_t)arena_from(&tensor->place) < offset + bytes && offset < (int64_t)arena_to(&tensor->place);
}

bool overlap_each(const struct device *device, int64_t offset, int64_t bytes, const struct tensor *except,
		  bool (*visit)(void *ctx, struct tensor *tensor), void *ctx)
{
	struct arena_extent extent = {.offset = (uint64_t)offset};
	for (; extent.offset < (uint64_t)(offset + bytes); extent.offset += extent.bytes) {
		if (!arena_at(device->arena, extent.offset, &extent))
			break;
		struct tensor *tensor = extent.tag;
		if (tensor && tensor != except && !visit(ctx, tensor))
			return false;
	}
	for (struct tensor *guest = device->guests, *next; guest; guest = next) {
		next = guest->next_guest;
		if (guest != except && holds(guest, offset, bytes) && !visit(ctx, guest))
			return false;
	}
	return true;
}

static bool count_one(void *ctx, struct tensor *tensor)
{
	(void)tensor;
	++*(uint32_t *)ctx;
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

int overlap_enter(struct device *device, struct tensor *guest)
{
	uint32_t n = 0;
	overlap_each(device, guest->place.offset, guest->place.bytes_per_npu, guest, count_one, &n);
	/* Each pair of tensors cuts at most two blocks when the first of them goes. */
	uint32_t entries = 2 * n + 2;
	if (arena_prepare(device->arena, entries))
		return -ENOMEM;
	if (take_gaps(device, arena_from(&guest->place), arena_to(&guest->place), guest)) {
		arena_unprepare(device->arena, entries);
		return -ENOMEM;
	}
	untag(device, arena_from(&guest->place), arena_to(&guest->place), guest);
	guest->prepared = entries;
	guest->guest = true;
	guest->prev_guest = NULL;
	guest->next_guest = device->guests;
	if (device->guests)
		device->guests->prev_guest = guest;
	device->guests = guest;
	return 0;
}

/* What of a leaving tensor's range, from `at` on, nobody else holds, or who holds it until when. */
struct coverage {
	uint64_t at, until;
	struct tensor *holder;
};

static bool cover(void *ctx, struct tensor *tensor)
{
	struct coverage *coverage = ctx;
	uint64_t from = arena_from(&tensor->place), to = arena_to(&tensor->place);
	if (from <= coverage->at && coverage->at < to) {
		if (!coverage->holder || to > coverage->until) {
			coverage->holder = tensor;
			coverage->until = to;
		}
	} else if (!coverage->holder && from > coverage->at && from < coverage->until) {
		coverage->until = from;
	}
	return true;
}

/* Gives back [from, to) of a tensor's range but for what guests hold. */
static void release_gaps(struct device *device, uint64_t from, uint64_t to, const struct tensor *leaving)
{
	struct coverage coverage;
	for (uint64_t at = from; at < to; at = coverage.until) {
		coverage = (struct coverage){.at = at, .until = to};
		overlap_each(device, (int64_t)at, (int64_t)(to - at), leaving, cover, &coverage);
		if (coverage.until > to)
			coverage.until = to;
		if (!coverage.holder)
			arena_release(device->arena, at, coverage.until - at);
	}
}

void overlap_leave(struct device *device, struct tensor *tensor)
{
	uint64_t from = arena_from(&tensor->place), to = arena_to(&tensor->place);
	if (!device->guests) {
		arena_release(device->arena, from, to - from);
		return;
	}
	release_gaps(device, from, to, tensor);
	untag(device, from, to, tensor);
	if (!tensor->guest)
		return;
	arena_unprepare(device->arena, tensor->prepared);
	tensor->guest = false;
	if (tensor->prev_guest)
		tensor->prev_guest->next_guest = tensor->next_guest;
	else
		device->guests = tensor->next_guest;
	if (tensor->next_guest)
		tensor->next_guest->prev_guest = tensor->prev_guest;
}

struct members {
	struct tensor **tensors;
	size_t n, capacity;
	int64_t from, to;
};

static bool member_count(void *ctx, struct tensor *tensor)
{
	(void)tensor;
	((struct members *)ctx)->capacity++;
	return true;
}

static bool member_add(void *ctx, struct tensor *tensor)
{
	struct members *members = ctx;
	for (size_t i = 0; i < members->n; i++)
		if (members->tensors[i] == tensor)
			return true;
	members->tensors[members->n++] = tensor;
	if (tensor->place.offset < members->from)
		members->from = tensor->place.offset;
	if (place_end(&tensor->place) > members->to)
		members->to = place_end(&tensor->place);
	return true;
}

static void each_member(struct device *device, bool (*visit)(void *, struct tensor *), struct members *members)
{
	for (struct tensor *guest = device->guests; guest; guest = guest->next_guest)
		overlap_each(device, guest->place.offset, guest->place.bytes_per_npu, NULL, visit, members);
}

static void count_kinds(const uint8_t *kinds, int64_t n, struct overlap_sums *sums)
{
	for (int64_t i = 0; i < n; i++) {
		unsigned kind = kinds[i];
		if (!kind)
			continue;
		if (kind & NPUMEM_BYTE_DATA)
			sums->actual.data++;
		else if (kind & NPUMEM_BYTE_DUMMY)
			sums->actual.dummy++;
		else if (kind & NPUMEM_BYTE_PADDING)
			sums->actual.padding++;
		else
			sums->actual.empty++;
		sums->lent += kind & NPUMEM_BYTE_EMPTY && kind & (NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY);
	}
}

static void paint_members(struct device *device, const struct members *members, struct overlap_sums *sums)
{
	uint8_t kinds[4096];
	const struct npumem_geometry *geometry = &device->options.geometry;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		for (int64_t at = members->from; at < members->to; at += (int64_t)sizeof(kinds)) {
			int64_t n = members->to - at < (int64_t)sizeof(kinds) ? members->to - at
									      : (int64_t)sizeof(kinds);
			memset(kinds, 0, sizeof(kinds));
			for (size_t i = 0; i < members->n; i++) {
				const struct npumem_place *place = &members->tensors[i]->place;
				int64_t from = at > place->offset ? at : place->offset;
				int64_t to = at + n < place_end(place) ? at + n : place_end(place);
				if (from < to)
					npumem_place_paint(geometry, place, npu, from - place->offset,
							   to - place->offset, kinds + (from - at));
			}
			count_kinds(kinds, n, sums);
		}
	}
}

static void blocks_add(struct npumem_blocks *sum, const struct npumem_blocks *blocks)
{
	sum->data += blocks->data;
	sum->dummy += blocks->dummy;
	sum->padding += blocks->padding;
	sum->empty += blocks->empty;
}

int overlap_sum(struct device *device, const struct overlap_sums **sums)
{
	*sums = &device->overlap;
	if (device->overlap_known)
		return 0;
	device->overlap = (struct overlap_sums){.lent = 0};
	struct members members = {.from = INT64_MAX, .to = 0};
	each_member(device, member_count, &members);
	if (members.capacity) {
		members.tensors = heap_zalloc(device->heap, members.capacity, sizeof(*members.tensors));
		if (!members.tensors)
			return -ENOMEM;
		each_member(device, member_add, &members);
		for (size_t i = 0; i < members.n; i++)
			blocks_add(&device->overlap.own, &members.tensors[i]->place.blocks);
		paint_members(device, &members, &device->overlap);
		heap_free(device->heap, members.tensors);
	}
	device->overlap_known = true;
	return 0;
}
