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

static void end_visit(struct device *device, struct tensor *guest)
{
	arena_unprepare(device->arena, guest->prepared);
	guest->guest = false;
	if (guest->prev_guest)
		guest->prev_guest->next_guest = guest->next_guest;
	else
		device->guests = guest->next_guest;
	if (guest->next_guest)
		guest->next_guest->prev_guest = guest->prev_guest;
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
	if (tensor->guest)
		end_visit(device, tensor);
}

static bool stop(void *ctx, struct tensor *tensor)
{
	(void)ctx;
	(void)tensor;
	return false;
}

bool overlap_any(const struct device *device, const struct tensor *tensor)
{
	const struct npumem_place *place = &tensor->place;
	return !overlap_each(device, place->offset, place->bytes_per_npu, tensor, stop, NULL);
}

struct first {
	const struct npumem_place *place;
	struct tensor *tensor;
};

static bool take_first(void *ctx, struct tensor *tensor)
{
	struct first *first = ctx;
	const struct npumem_place *a = first->place, *b = &tensor->place;
	if (a->offset < place_end(b) && b->offset < place_end(a) &&
	    (!first->tensor || b->offset < first->tensor->place.offset))
		first->tensor = tensor;
	return true;
}

struct tensor *overlap_first(const struct device *device, const struct npumem_place *place)
{
	struct first first = {.place = place};
	overlap_each(device, place->offset, place->bytes_per_npu, NULL, take_first, &first);
	return first.tensor;
}

int overlap_settle(struct device *device)
{
	/* Giving back may cut two blocks, taking again needs two entries. */
	enum { ENTRIES = 4 };
	for (struct tensor *guest = device->guests, *next; guest; guest = next) {
		uint64_t from = arena_from(&guest->place), to = arena_to(&guest->place);
		next = guest->next_guest;
		if (overlap_any(device, guest))
			continue;
		if (arena_prepare(device->arena, ENTRIES))
			return -ENOMEM;
		arena_release(device->arena, from, to - from);
		arena_unprepare(device->arena, ENTRIES);
		end_visit(device, guest);
		if (arena_reserve(device->arena, from, to - from, guest))
			assert(!"overlap_settle: entries were set aside");
	}
	return 0;
}

/* ---- counts ---- */

enum { WINDOW_BYTES = 4096 };

/* A window of some NPUs on which every tensor there looks the same. */
struct painting {
	const struct npumem_geometry *geometry;
	int64_t at, n;	     /* offsets */
	int64_t npu, n_npus; /* from NPU on */
	uint8_t kinds[WINDOW_BYTES];
	bool cut[NPUMEM_NPUS_MAX + 1]; /* NPUs that some tensor looks different on than on the one before */
	struct overlap_sums *sums;
};

static bool note_cuts(void *ctx, struct tensor *tensor)
{
	struct painting *painting = ctx;
	const struct npumem_place *place = &tensor->place;
	int64_t last = (place->start_npu + place->shape.c - 1) % painting->geometry->n_npus;
	/* What meet_class tells apart: before the first channel's NPU, up to the last one's, that one, and behind.
	 */
	painting->cut[place->start_npu] = painting->cut[last] = painting->cut[last + 1] = true;
	return true;
}

/* Counts one byte on `n` NPUs as its strongest kind. */
static void count_byte(unsigned kinds, int64_t n, struct npumem_blocks *blocks)
{
	if (kinds & NPUMEM_BYTE_DATA)
		blocks->data += n;
	else if (kinds & NPUMEM_BYTE_DUMMY)
		blocks->dummy += n;
	else if (kinds & NPUMEM_BYTE_PADDING)
		blocks->padding += n;
	else if (kinds & NPUMEM_BYTE_EMPTY)
		blocks->empty += n;
}

static bool paint_tensor(void *ctx, struct tensor *tensor)
{
	struct painting *painting = ctx;
	const struct npumem_place *place = &tensor->place;
	uint8_t kinds[WINDOW_BYTES];
	int64_t end = painting->at + painting->n;
	int64_t from = painting->at > place->offset ? painting->at : place->offset;
	int64_t to = end < place_end(place) ? end : place_end(place);
	if (from >= to)
		return true;
	memset(kinds, 0, (size_t)(to - from));
	npumem_place_paint(painting->geometry, place, painting->npu, from - place->offset, to - place->offset,
			   kinds);
	for (int64_t i = from; i < to; i++) {
		count_byte(kinds[i - from], painting->n_npus, &painting->sums->own);
		painting->kinds[i - painting->at] |= kinds[i - from];
	}
	return true;
}

static void count_npus(struct device *device, struct painting *painting)
{
	struct overlap_sums *sums = painting->sums;
	memset(painting->kinds, 0, (size_t)painting->n);
	overlap_each(device, painting->at, painting->n, NULL, paint_tensor, painting);
	for (int64_t i = 0; i < painting->n; i++) {
		unsigned kinds = painting->kinds[i];
		count_byte(kinds, painting->n_npus, &sums->actual);
		if (kinds & NPUMEM_BYTE_EMPTY && kinds & (NPUMEM_BYTE_DATA | NPUMEM_BYTE_DUMMY))
			sums->lent += painting->n_npus;
	}
}

static void count_window(struct device *device, int64_t at, int64_t n, struct overlap_sums *sums)
{
	int64_t n_npus = device->options.geometry.n_npus;
	struct painting painting = {.geometry = &device->options.geometry, .at = at, .n = n, .sums = sums};
	overlap_each(device, at, n, NULL, note_cuts, &painting);
	for (int64_t npu = 0, end; npu < n_npus; npu = end) {
		for (end = npu + 1; end < n_npus && !painting.cut[end]; end++)
			;
		painting.npu = npu;
		painting.n_npus = end - npu;
		count_npus(device, &painting);
	}
}

/* The next offsets, from *to on, at which some guest lies: false where none does. */
static bool next_stretch(const struct device *device, int64_t *from, int64_t *to)
{
	int64_t after = *to;
	*from = INT64_MAX;
	for (const struct tensor *guest = device->guests; guest; guest = guest->next_guest) {
		int64_t start = guest->place.offset > after ? guest->place.offset : after;
		int64_t end = place_end(&guest->place);
		if (end <= after || start > *from || (start == *from && end <= *to))
			continue;
		*from = start;
		*to = end;
	}
	return *from != INT64_MAX;
}

const struct overlap_sums *overlap_sum(struct device *device)
{
	struct overlap_sums *sums = &device->overlap;
	int64_t from, to = 0, n;
	if (device->overlap_known)
		return sums;
	*sums = (struct overlap_sums){.lent = 0};
	while (next_stretch(device, &from, &to))
		for (int64_t at = from; at < to; at += n) {
			n = to - at < WINDOW_BYTES ? to - at : WINDOW_BYTES;
			count_window(device, at, n, sums);
		}
	device->overlap_known = true;
	return sums;
}
