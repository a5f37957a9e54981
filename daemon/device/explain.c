/* Only runs on a refusal, so it may look at every tensor once; it changes nothing. */
#include "daemon/device/explain.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/device/overlap.h"
#include "daemon/device/reuse.h"

/* The largest N of this shape whose bytes per NPU are within `room`; 0 where not even 1 fits. */
static int64_t largest_n(const struct npumem_place *place, int64_t room)
{
	int64_t words = room / place->word_bytes, n;
	if (place->layout == NPUMEM_STRIDED) {
		int64_t inner = place->bytes_per_npu / place->word_bytes - (place->words_n - 1) * place->stride.n;
		n = words < inner ? 0 : (words - inner) / place->stride.n + 1;
	} else {
		n = words / place->stride.n;
	}
	n *= place->lanes;
	return n < place->shape.n ? n : place->shape.n - 1;
}

static int64_t fits(const struct device *device, const struct npumem_spec *spec, int64_t room)
{
	struct npumem_place place;
	return npumem_place_resolve(&device->options.geometry, spec, &place, NULL) == 0 &&
	       place.bytes_per_npu <= room;
}

/* The widest matrix that fits, or the start NPU that does; 0 or NPUMEM_ANY where none does. */
static void better(const struct device *device, const struct npumem_spec *spec, int64_t room, int64_t *w,
		   int64_t *start_npu)
{
	struct npumem_spec other = *spec;
	struct npumem_plan plan;
	*w = 0;
	*start_npu = NPUMEM_ANY;
	other.address = NPUMEM_ANY;
	if (npumem_plan(&device->options.geometry, &other, &plan, NULL))
		return;
	if (plan.n_widths && plan.widths[0].bytes_per_npu <= room)
		*w = plan.widths[0].w;
	other.start_npu = plan.best_start_npu;
	if (plan.best_start_saves > 0 && fits(device, &other, room))
		*start_npu = plan.best_start_npu;
}

/* The largest free extent at this alignment once `compact` has moved what it can. */
static int64_t after_compact(struct device *device)
{
	int64_t at = 0, largest = 0, npu_bytes = device->options.geometry.npu_bytes;
	struct arena_extent extent;
	for (uint64_t offset = 0; arena_at(device->arena, offset, &extent); offset += extent.bytes) {
		const struct tensor *tensor = extent.tag;
		if (!extent.taken)
			continue;
		if (tensor && !tensor->pinned && !device->guests) {
			int64_t align = tensor->place.align_bytes;
			at = (at + align - 1) / align * align + tensor->place.bytes_per_npu;
			continue;
		}
		if ((int64_t)extent.offset - at > largest)
			largest = (int64_t)extent.offset - at;
		at = (int64_t)(extent.offset + extent.bytes);
	}
	return npu_bytes - at > largest ? npu_bytes - at : largest;
}

struct in_the_way {
	struct tensor *tensor;
};

static bool note_first(void *ctx, struct tensor *tensor)
{
	((struct in_the_way *)ctx)->tensor = tensor;
	return false;
}

static void say_in_the_way(struct device *device, const struct npumem_place *place, const struct asker *asker,
			   char *text, size_t bytes)
{
	struct in_the_way found = {NULL};
	char name[ASKER_NAME_BYTES];
	overlap_each(device, place->offset, place->bytes_per_npu, NULL, note_first, &found);
	if (!found.tensor)
		return;
	const struct npumem_place *other = &found.tensor->place;
	asker_name(asker, found.tensor, name);
	snprintf(text, bytes, "; in the way: %s, offsets %" PRId64 " to %" PRId64, name, other->offset,
		 other->offset + other->bytes_per_npu - 1);
}

int explain_no_room(struct device *device, const struct device_request *request, const struct npumem_place *place,
		    const struct asker *asker)
{
	int64_t align = place->align_bytes < ARENA_QUANTUM ? ARENA_QUANTUM : place->align_bytes;
	int64_t room = (int64_t)arena_largest_fit(device->arena, (uint64_t)align);
	int64_t free_bytes = (int64_t)arena_free_bytes(device->arena), n = largest_n(place, room), w, start_npu,
		ignored;
	bool fixed = request->spec.address != NPUMEM_ANY;
	bool compact = !fixed && after_compact(device) >= place->bytes_per_npu;
	struct reuse_wish wish = {.reuse = NPUMEM_IF_SAFE, .dma_only = request->dma_only};
	bool if_safe =
		!fixed && request->reuse != NPUMEM_IF_SAFE && reuse_search(device, place, &wish, &ignored) == 0;
	char way[160] = "";

	better(device, &request->spec, room, &w, &start_npu);
	if (fixed)
		say_in_the_way(device, place, asker, way, sizeof(way));
	int status = npumem_error_set(asker->error, NPUMEM_RESOURCE_EXHAUSTED,
				      "no room for %" PRId64 " bytes on each NPU%s: %" PRId64
				      " free in all, the largest free extent is %" PRId64 "%s%s%s%s%s",
				      place->bytes_per_npu, fixed ? " at this address" : "", free_bytes, room, way,
				      compact ? "; compact would make room" : "",
				      if_safe ? "; reuse if-safe would find room" : "",
				      w && !fixed ? "; another width fits" : "",
				      start_npu != NPUMEM_ANY && !fixed ? "; another start NPU fits" : "");
	struct npumem_error *error = asker->error;
	npumem_error_number(error, "asked_bytes_per_npu", place->bytes_per_npu);
	npumem_error_number(error, "free_bytes", free_bytes);
	npumem_error_number(error, "largest_free_bytes", room);
	npumem_error_number(error, "largest_n", n);
	npumem_error_number(error, "fits_after_compact", compact);
	npumem_error_number(error, "fits_if_safe", if_safe);
	if (w)
		npumem_error_number(error, "better_w", w);
	if (start_npu != NPUMEM_ANY)
		npumem_error_number(error, "better_start_npu", start_npu);
	if (fixed && way[0]) {
		struct in_the_way found = {NULL};
		char name[ASKER_NAME_BYTES];
		overlap_each(device, place->offset, place->bytes_per_npu, NULL, note_first, &found);
		npumem_error_text(error, "in_the_way", asker_name(asker, found.tensor, name));
		npumem_error_number(error, "offset", found.tensor->place.offset);
		npumem_error_number(error, "bytes", found.tensor->place.bytes_per_npu);
	}
	return status;
}
