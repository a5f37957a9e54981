/* What the device holds: counts, the owners of a byte, and the invariants that tests check. */
#include <stdio.h>

#include "daemon/device/internal.h"
#include "daemon/device/geometry/intersect.h"
#include "daemon/device/reuse/overlap.h"
#include "daemon/device/reuse/overlap_count.h"
#include "daemon/device/geometry/runs.h"
#include "daemon/device/tensors/meetings.h"
#include "daemon/device/tensors/written.h"

void device_stat(struct device *device, struct device_counts *counts)
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
	return (struct device_scan){tensor->place, tensor_all_written(tensor), !tensor_root(tensor)->touched};
}

int64_t device_scan_cost(const struct device *device, const struct tensor *tensor)
{
	if (!tensor_root(tensor)->touched)
		return 0;
	return written_scan_cost(&tensor->place) * (!tensor_all_written(tensor) + (device->local.n_damaged > 0));
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
	state->lends = state->borrows = false;
	for (struct meeting *meeting = tensor_root(tensor)->meetings; meeting; meeting = meeting->next) {
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
	int64_t at = finding->offset - tensor->place.offset;
	if (at < 0 || tensor->placing)
		return true;
	npumem_place_paint(finding->geometry, &tensor->place, finding->npu, at, at + 1, &kind);
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

struct range {
	int64_t from, to;
	bool (*visit)(void *ctx, struct tensor *tensor);
	void *ctx;
};

/* What shares only a quantum has none of the bytes. */
static bool visit_exactly(void *ctx, struct tensor *tensor)
{
	const struct range *range = ctx;
	if (tensor->placing || tensor->place.offset >= range->to || place_end(&tensor->place) <= range->from)
		return true;
	return range->visit(range->ctx, tensor);
}

bool device_each_at(const struct device *device, int64_t offset, int64_t bytes,
		    bool (*visit)(void *ctx, struct tensor *tensor), void *ctx)
{
	struct range range = {offset, offset + bytes, visit, ctx};
	return overlap_each(device, offset, bytes, NULL, visit_exactly, &range);
}

void device_peek(const struct device *device, int64_t npu, int64_t offset, int64_t bytes, uint8_t *to)
{
	memcpy(to, local_at(&device->local, npu, offset), (size_t)bytes);
}

/* ---- invariants ---- */

struct audit {
	struct device *device;
	const struct tensor *tensor;
	struct npumem_blocks sums;
	int64_t written, n_tensors, n_views;
	const char *wrong;
};

static bool audit_neighbour(void *ctx, struct tensor *other)
{
	struct audit *audit = ctx;
	struct intersect_range range;
	if (audit->tensor->placing || other->placing)
		return true;
	if (intersect_first(&audit->device->options.geometry, &audit->tensor->place, KINDS_DATA, &other->place,
			    KINDS_DATA, &range))
		audit->wrong = "a byte is data of two tensors";
	else if (!other->guest && !audit->tensor->guest &&
		 intersect_first(&audit->device->options.geometry, &audit->tensor->place, KINDS_FOOTPRINT,
				 &other->place, KINDS_FOOTPRINT, &range))
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
	const struct npumem_place *place = &tensor->place;
	struct arena_extent extent;
	audit->tensor = tensor;
	if (place->offset < 0 || place_end(place) > geometry->npu_bytes)
		return "a tensor runs past the end of its NPU";
	if (tensor->base) {
		audit->n_views++;
		if (device_find(audit->device, tensor->base->handle) != tensor->base || tensor->base->base)
			return "a view has no base";
		if (place->offset < tensor->base->place.offset ||
		    place_end(place) > place_end(&tensor->base->place))
			return "a view leaves its base";
		return NULL;
	}
	audit->n_tensors++;
	if (tensor->guest && !audit->device->has_stale_guests && !overlap_any(audit->device, tensor))
		return "a guest meets nobody, and nobody knows";
	for (uint64_t at = arena_from(place); at < arena_to(place); at = extent.offset + extent.bytes)
		if (!arena_at(audit->device->arena, at, &extent) || !extent.taken)
			return "a tensor's bytes are free in the arena";
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
		if (device->slots[i].live && device->slots[i].tensor->place.offset != NPUMEM_ANY)
			wrong = audit_tensor(&audit, device->slots[i].tensor);
	if (wrong)
		return wrong;
	if (memcmp(&audit.sums, &device->totals.blocks, sizeof(audit.sums)) ||
	    audit.n_tensors != device->n_tensors || audit.n_views != device->n_views)
		return "the running sums differ from the tensors";
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
