/* What the device holds: counts, the owners of a byte, and the invariants that tests check. */
#include <stdio.h>

#include "daemon/device/internal.h"
#include "daemon/device/geometry/intersect.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/overlap_count.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/geometry/runs.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/page_cost.h"
#include "daemon/device/tensors/written.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Of what is counted. */
static void count_all(const struct device *device, struct device_counts *counts)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	struct overlap_excess excess = overlap_sum(device);
	*counts = (struct device_counts){
		.total = geometry->n_npus * geometry->npu_bytes,
		.data = device->totals.blocks.data - excess.over.data,
		.dummy = device->totals.blocks.dummy - excess.over.dummy,
		.padding = device->totals.blocks.padding - excess.over.padding,
		.empty = device->totals.blocks.empty - excess.over.empty,
		.lent = excess.lent,
		.largest_free = (int64_t)arena_largest_free(device->arena),
		.tensors = device->n_tensors,
		.views = device->n_views,
		.packs = device_packs_bytes(device),
	};
	counts->free = counts->total - counts->data - counts->dummy - counts->padding - counts->empty;
}

void device_stat(struct device *device, struct device_counts *counts)
{
	while (!overlap_count(device, UINT32_MAX))
		;
	count_all(device, counts);
}

void device_stat_uncounted(const struct device *device, struct device_counts *counts)
{
	const struct npumem_blocks *sums = &device->totals.blocks;
	count_all(device, counts);
	counts->uncounted = true;
	counts->free = device->options.geometry.n_npus * (int64_t)arena_free_bytes(device->arena);
	/* No byte is data or dummy of two tensors, but of one that is still being checked. */
	counts->data = least(sums->data, counts->total - counts->free);
	counts->dummy = least(sums->dummy, counts->total - counts->free - counts->data);
	counts->padding = counts->lent = 0;
	counts->empty = counts->total - counts->free - counts->data - counts->dummy;
}

int64_t device_packs_bytes(const struct device *device)
{
	return (int64_t)atomic_load_explicit(&device->packs.bytes, memory_order_relaxed);
}

bool device_stat_count(struct device *device, unsigned most)
{
	return overlap_count(device, most);
}

void device_npus(const struct device *device, int64_t *npus)
{
	totals_of_npus(&device->totals, &device->options.geometry, npus);
}

struct device_scan device_scan_of(const struct tensor *tensor)
{
	return (struct device_scan){tensor_place(tensor), tensor_all_written(tensor),
				    !tensor_root(tensor)->touched};
}

int64_t device_scan_cost(const struct device *device, const struct tensor *tensor)
{
	if (!tensor_root(tensor)->touched)
		return 0;
	int64_t looks = !tensor_all_written(tensor) + (device->local.n_damaged > 0);
	return looks ? looks * (written_scan_cost(TENSOR_PLACE(tensor)) + page_cost_scan(device, tensor)) : 0;
}

void device_scan(const struct device *device, const struct device_scan *scan, struct device_state *state)
{
	state->unwritten_bytes = state->damaged_bytes = state->lost_bytes = 0;
	if (scan->untouched) {
		state->unwritten_bytes = scan->place.blocks.data;
		return;
	}
	written_scan(device, &scan->place, scan->all_written ? NULL : &state->unwritten_bytes,
		     &state->damaged_bytes, &state->lost_bytes);
	state->damaged_bytes -= state->lost_bytes;
	state->unwritten_bytes -= scan->all_written ? 0 : state->lost_bytes;
}

void device_state(struct device *device, const struct tensor *tensor, struct device_state *state)
{
	struct device_scan scan = device_scan_of(tensor);
	device_scan(device, &scan, state);
	device_state_lending(tensor, state);
}

void device_state_lending(const struct tensor *tensor, struct device_state *state)
{
	struct meeting *meeting = tensor_root(tensor)->first_meeting;
	state->lends = state->borrows = false;
	/* Of hundreds one or two say it all: a page of a list has 256 tensors. */
	for (; meeting && !(state->lends && state->borrows); meeting = meeting->next) {
		state->lends |= meeting->lends && !meeting->other->placing;
		state->borrows |= meetings_twin(meeting)->lends && !meeting->other->placing;
	}
}

struct finding {
	const struct npumem_geometry *geometry;
	int64_t npu, offset;
	struct device_owner *owners;
	unsigned n, most;
};

static bool find_kind(void *ctx, struct tensor *tensor)
{
	struct finding *finding = ctx;
	uint8_t kind = 0;
	int64_t at = finding->offset - tensor_offset(tensor);
	if (at < 0 || tensor->placing)
		return true;
	npumem_place_paint(finding->geometry, TENSOR_PLACE(tensor), finding->npu, at, at + 1, &kind);
	if (kind && finding->n < finding->most)
		finding->owners[finding->n++] = (struct device_owner){tensor, (enum npumem_byte)kind};
	return true;
}

unsigned device_at(struct device *device, int64_t npu, int64_t offset, struct device_owner *owners, unsigned most)
{
	struct finding finding = {&device->options.geometry, npu, offset, owners, 0, most};
	overlap_each(device, offset, 1, NULL, find_kind, &finding);
	return finding.n;
}

/* What shares only a quantum has none of the bytes. */
static bool has_one_of(const struct tensor *tensor, int64_t from, int64_t to)
{
	return !tensor->placing && tensor_offset(tensor) < to && tensor_end(tensor) > from;
}

/* All tensors of one offset meet each other. */
_Static_assert(DEVICE_VISITS_MAX > ARENA_QUANTUM * (MEETINGS_MAX + 1),
	       "the tensors of a quantum are visited at once");

bool device_each_at(const struct device *device, int64_t offset, int64_t *bytes,
		    bool (*visit)(void *ctx, struct tensor *tensor), void *ctx)
{
	struct overlap_cursor cursor = {.guests = false};
	int64_t to = offset + *bytes;
	unsigned n[2] = {0, 0};
	struct tensor *tensor;
	/* Hosts come in order of offset, then guests do: behind the first one too many nothing is visited. */
	while ((tensor = overlap_next(device, offset, to - offset, &cursor))) {
		if (n[cursor.guests]++ == DEVICE_VISITS_MAX)
			to = (int64_t)(cursor.guests ? tensor->visit->quanta.from : arena_from(tensor));
		else if (has_one_of(tensor, offset, to) && !visit(ctx, tensor))
			return false;
	}
	*bytes = to - offset;
	return true;
}

void device_peek(const struct device *device, int64_t npu, int64_t offset, int64_t bytes, uint8_t *to)
{
	memcpy(to, local_at(&device->local, npu, offset), (size_t)bytes);
}

__attribute__((no_sanitize("thread"))) void device_fetch(const struct device *device, int64_t npu, int64_t offset,
							 int64_t bytes)
{
	enum { PAGE_BYTES = 4096 };
	const volatile uint8_t *at = local_at(&device->local, npu, offset);
	for (int64_t i = 0; i < bytes; i += PAGE_BYTES)
		(void)at[i];
	(void)at[bytes - 1];
}

/* ---- invariants ---- */

struct audit {
	struct device *device;
	const struct tensor *tensor;
	struct npumem_blocks sums;
	struct occupancy immovable;
	int64_t written, n_tensors, n_views;
	const char *wrong;
};

static bool audit_neighbour(void *ctx, struct tensor *other)
{
	struct audit *audit = ctx;
	struct intersect_range range;
	if (audit->tensor->placing || other->placing)
		return true;
	if (intersect_first(&audit->device->options.geometry, TENSOR_PLACE(audit->tensor), KINDS_DATA,
			    TENSOR_PLACE(other), KINDS_DATA, &range))
		audit->wrong = "a byte is data of two tensors";
	else if (!tensor_is_guest(other) && !tensor_is_guest(audit->tensor) &&
		 intersect_first(&audit->device->options.geometry, TENSOR_PLACE(audit->tensor), KINDS_FOOTPRINT,
				 TENSOR_PLACE(other), KINDS_FOOTPRINT, &range))
		audit->wrong = "two footprints meet, and neither is a guest";
	return !audit->wrong;
}

static bool audit_written(void *ctx, const struct runs_series *series)
{
	struct audit *audit = ctx;
	audit->written += (int64_t)bits_count_series(local_written(&audit->device->local, series->npu),
						     (uint64_t)series->offset, (uint64_t)series->bytes,
						     (uint64_t)series->n, (uint64_t)series->pitch);
	return true;
}

static const char *audit_tensor(struct audit *audit, const struct tensor *tensor)
{
	const struct npumem_geometry *geometry = &audit->device->options.geometry;
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	struct arena_extent extent;
	audit->tensor = tensor;
	if (place->offset < 0 || place_end(place) > geometry->npu_bytes)
		return "a tensor runs past the end of its NPU";
	if (tensor->base) {
		audit->n_views++;
		if (device_find(audit->device, tensor->base->handle) != tensor->base || tensor->base->base)
			return "a view has no base";
		if (place->offset < tensor_offset(tensor->base) || place_end(place) > tensor_end(tensor->base))
			return "a view leaves its base";
		return NULL;
	}
	audit->n_tensors++;
	if (tensor_is_guest(tensor) && !overlap_any(audit->device, tensor))
		return "a guest shares no quanta";
	for (uint64_t at = arena_from(tensor); at < arena_to(tensor); at = extent.offset + extent.bytes)
		if (!arena_at(audit->device->arena, at, &extent) || !extent.taken)
			return "a tensor's bytes are free in the arena";
	if (tensor->is_immovable != overlap_is_immovable(audit->device, tensor))
		return "a tensor that cannot move is not counted as such, or one that can is";
	if (tensor->is_immovable)
		occupancy_add(&audit->immovable, geometry->npu_bytes, place->offset, place_end(place), 1);
	audit->sums.data += place->blocks.data;
	audit->sums.dummy += place->blocks.dummy;
	audit->sums.padding += place->blocks.padding;
	audit->sums.empty += place->blocks.empty;
	runs_each(geometry, place, true, audit_written, audit);
	overlap_each(audit->device, place->offset, place->bytes_per_npu, tensor, audit_neighbour, audit);
	return audit->wrong;
}

const char *device_check(struct device *device)
{
	const struct npumem_geometry *geometry = &device->options.geometry;
	struct audit audit = {.device = device};
	struct device_counts counts;
	int64_t written = 0, damaged = 0;
	const char *wrong = arena_check(device->arena);
	if (!wrong)
		wrong = intervals_check(&device->guests);
	/* Hidden ones too. */
	for (uint32_t i = 0; i < device->n_slots && !wrong; i++)
		if (slot_at(device, i)->slot == TENSOR_SLOT_LIVE &&
		    slot_at(device, i)->packed.offset != NPUMEM_ANY)
			wrong = audit_tensor(&audit, slot_at(device, i));
	if (wrong)
		return wrong;
	if (memcmp(&audit.sums, &device->totals.blocks, sizeof(audit.sums)) ||
	    audit.n_tensors != device->n_tensors || audit.n_views != device->n_views)
		return "the running sums differ from the tensors";
	if (memcmp(audit.immovable.change, device->immovable.change, sizeof(audit.immovable.change)))
		return "the cells of what cannot move differ from the tensors";
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		written +=
			(int64_t)bits_count(local_written(&device->local, npu), 0, (uint64_t)geometry->npu_bytes);
		damaged +=
			(int64_t)bits_count(local_damaged(&device->local, npu), 0, (uint64_t)geometry->npu_bytes);
	}
	if (written != audit.written)
		return "a byte outside all data is marked as written";
	if (damaged != (int64_t)device->local.n_damaged)
		return "the count of damaged bytes is wrong";
	device_stat(device, &counts);
	if (counts.free < 0 ||
	    counts.data + counts.dummy + counts.padding + counts.empty + counts.free != counts.total)
		return "the kinds of bytes do not add up";
	/* More, where a strided tensor at an odd address takes part of a quantum. */
	if (counts.free < geometry->n_npus * (int64_t)arena_free_bytes(device->arena))
		return "the arena has more free bytes than the device";
	return NULL;
}
