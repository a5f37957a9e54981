/* Only runs on a refusal, but the client may ask again at once: so it looks at every tensor only where they are
 * few. Its changes are taken back before it returns. What it promises is what the same request, changed in that
 * one thing, would get. */
#include "daemon/device/placement/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/device/placement/compact.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/reuse/reuse_search.h"

/* A refused request, and what could be done about it. */
struct refusal {
	struct device *device;
	const struct device_request *request;
	const struct npumem_place *place;
	bool fixed;	/* at an address of the caller's */
	int64_t room;	/* for the request as it is: at its address, or the most anywhere */
	bool asked_all; /* the two that follow are known: it took a look at all tensors */
	bool compact, if_safe;
	int64_t w, start_npu; /* that would fit; 0 and NPUMEM_ANY where none does */
	struct tensor *in_the_way;
};

/* ---- how much room there is ---- */

static int64_t room_of(const struct refusal *refusal)
{
	const struct device *device = refusal->device;
	if (!refusal->fixed)
		return (int64_t)arena_largest_fit(device->arena,
						  (uint64_t)arena_align(refusal->place->align_bytes));
	struct npumem_place rest = *refusal->place;
	rest.bytes_per_npu = device->options.geometry.npu_bytes - rest.offset;
	const struct tensor *next = overlap_first(device, &rest);
	if (!next)
		return rest.bytes_per_npu;
	return tensor_offset(next) > rest.offset ? tensor_offset(next) - rest.offset : 0;
}

static void note_gap(void *ctx, int64_t from, int64_t to)
{
	struct refusal *refusal = ctx;
	const struct npumem_place *place = refusal->place;
	int64_t align = arena_align(place->align_bytes), at = (from + align - 1) / align * align;
	if (refusal->fixed)
		at = (int64_t)quanta_from(place->offset) < from ? to : place->offset;
	refusal->compact |= to - at >= place->bytes_per_npu;
}

/* ---- what else would fit ---- */

/* Bytes per NPU with `words` words along N; they grow by one N stride each. */
static int64_t bytes_of(const struct npumem_place *place, int64_t words)
{
	const struct npumem_dims *stride = &place->stride;
	int64_t n = words * stride->n;
	if (place->layout == NPUMEM_STRIDED)
		n += 1 - stride->n + (place->channels_per_npu - 1) * stride->c + (place->shape.h - 1) * stride->h +
		     (place->shape.w - 1) * stride->w;
	return (n * place->word_bytes + 3) / 4 * 4;
}

/* The largest N of this shape that fits into the room; 0 where not even 1 does. */
static int64_t largest_n(const struct refusal *refusal)
{
	const struct npumem_place *place = refusal->place;
	int64_t fits = 0, too_many = place->words_n;
	while (too_many - fits > 1) {
		int64_t words = fits + (too_many - fits) / 2;
		if (bytes_of(place, words) <= refusal->room)
			fits = words;
		else
			too_many = words;
	}
	return fits * place->lanes;
}

/* Another width, or another start NPU at the same offset. */
static void find_better(struct refusal *refusal)
{
	const struct npumem_geometry *geometry = &refusal->device->options.geometry;
	struct npumem_spec spec = refusal->request->spec;
	struct npumem_place place;
	struct npumem_plan plan;
	spec.address = NPUMEM_ANY;
	spec.start_npu = refusal->place->start_npu;
	refusal->w = 0;
	refusal->start_npu = NPUMEM_ANY;
	if (npumem_plan(geometry, &spec, &plan, NULL))
		return;
	if (plan.n_widths && plan.widths[0].bytes_per_npu <= refusal->room)
		refusal->w = plan.widths[0].w;
	spec.start_npu = plan.best_start_npu;
	if (plan.best_start_saves > 0 && npumem_place_resolve(geometry, &spec, &place, NULL) == 0 &&
	    place.bytes_per_npu <= refusal->room)
		refusal->start_npu = plan.best_start_npu;
}

struct if_safe {
	const struct refusal *refusal;
	struct reuse_check check;
	struct reuse_wish wish;
	int64_t steps;
	int status;
};

static bool check_neighbour(void *ctx, struct tensor *other)
{
	struct if_safe *if_safe = ctx;
	const struct npumem_place *place = if_safe->refusal->place;
	struct error_context quiet = {.error = NULL};
	if (!places_share_offsets(place, TENSOR_PLACE(other)))
		return true;
	reuse_check_begin(&if_safe->check, if_safe->refusal->device, place, &if_safe->wish, other);
	if_safe->status = reuse_check_step(&if_safe->check, &if_safe->steps, &quiet);
	return !if_safe->status;
}

static int fits_over(struct if_safe *if_safe)
{
	const struct refusal *refusal = if_safe->refusal;
	const struct npumem_place *place = refusal->place;
	struct error_context quiet = {.error = NULL};
	int status = reuse_check_crowd(refusal->device, place, &quiet);
	if (status)
		return status;
	overlap_each(refusal->device, place->offset, place->bytes_per_npu, NULL, check_neighbour, if_safe);
	return if_safe->status;
}

static int fits_anywhere(struct if_safe *if_safe)
{
	const struct refusal *refusal = if_safe->refusal;
	struct error_context quiet = {.error = NULL};
	struct reuse_search search;
	int64_t offset;
	enum reuse_search_answer answer = REUSE_SEARCH_NONE;
	if (reuse_search_begin(&search, refusal->device, refusal->place, &if_safe->wish, &quiet) == 0)
		answer = reuse_search_step(&search, &if_safe->steps, &offset);
	reuse_search_end(&search);
	return answer == REUSE_SEARCH_PAUSE ? -EAGAIN : answer == REUSE_SEARCH_NONE;
}

/* 0: it would fit; -EAGAIN: that takes too long to say. */
static int ask_if_safe(const struct refusal *refusal)
{
	enum { STEPS = 1 << 11 }; /* of a third of a microsecond: one turn of the loop */
	struct if_safe if_safe = {.refusal = refusal, .steps = STEPS};
	if_safe.wish = (struct reuse_wish){.reuse = NPUMEM_IF_SAFE, .dma_only = refusal->request->dma_only};
	if (refusal->request->reuse == NPUMEM_IF_SAFE)
		return 1;
	return refusal->fixed ? fits_over(&if_safe) : fits_anywhere(&if_safe);
}

/* What takes a look at every tensor. */
static void ask_all(struct refusal *refusal, int64_t free_bytes)
{
	if (refusal->device->n_tensors > EXPLAIN_TENSORS_MAX)
		return;
	int if_safe = ask_if_safe(refusal);
	refusal->asked_all = if_safe != -EAGAIN;
	if (!refusal->asked_all)
		return;
	refusal->if_safe = if_safe == 0;
	/* Where there is too little anyway, as in a device that is full, no compaction helps. */
	if (free_bytes >= refusal->place->bytes_per_npu)
		compact_each_gap(refusal->device, note_gap, refusal);
}

/* ---- in words and fields ---- */

static void say(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *text, size_t bytes, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text + used, bytes - used, format, arguments);
	va_end(arguments);
}

static int set_message(const struct refusal *refusal, int64_t free_bytes, int64_t largest,
		       const struct error_context *context)
{
	char more[NPUMEM_MESSAGE_BYTES] = "", name[ERROR_CONTEXT_NAME_BYTES];
	const struct npumem_place *place = refusal->place;
	if (!refusal->fixed && refusal->room < largest)
		say(more, sizeof(more), " (%" PRId64 " at a multiple of %" PRId64 ")", refusal->room,
		    arena_align(place->align_bytes));
	if (refusal->in_the_way) {
		const struct npumem_place *other = TENSOR_PLACE(refusal->in_the_way);
		say(more, sizeof(more), "; in the way: %s, offsets %" PRId64 " to %" PRId64,
		    error_context_name(context, refusal->in_the_way, name), other->offset, place_end(other) - 1);
	}
	if (refusal->compact)
		say(more, sizeof(more), "; compact would make room");
	if (refusal->if_safe)
		say(more, sizeof(more), "; reuse if-safe would find room");
	if (refusal->w)
		say(more, sizeof(more), "; another width would fit");
	if (refusal->start_npu != NPUMEM_ANY)
		say(more, sizeof(more), "; another start NPU would fit");
	return npumem_error_set(context->error, NPUMEM_RESOURCE_EXHAUSTED,
				"no room for %" PRId64 " bytes on each NPU%s: %" PRId64
				" free in all, the largest free extent is %" PRId64 "%s",
				place->bytes_per_npu, refusal->fixed ? " at this address" : "", free_bytes,
				largest, more);
}

int explain_no_room(struct device *device, const struct device_request *request, const struct npumem_place *place,
		    const struct error_context *context)
{
	struct refusal refusal = {.device = device, .request = request, .place = place};
	struct npumem_error *error = context->error;
	if (!error)
		return NPUMEM_RESOURCE_EXHAUSTED;
	int64_t free_bytes = (int64_t)arena_free_bytes(device->arena);
	int64_t largest = (int64_t)arena_largest_free(device->arena);
	refusal.fixed = request->spec.address != NPUMEM_ANY;
	refusal.room = room_of(&refusal);
	if (refusal.fixed)
		refusal.in_the_way = overlap_first(device, place);
	refusal.start_npu = NPUMEM_ANY;
	if (!context->is_brief) {
		find_better(&refusal);
		ask_all(&refusal, free_bytes);
	}
	set_message(&refusal, free_bytes, largest, context);
	npumem_error_number(error, "asked_bytes_per_npu", place->bytes_per_npu);
	npumem_error_number(error, "free_bytes", free_bytes);
	npumem_error_number(error, "largest_free_bytes", largest);
	npumem_error_number(error, "largest_n", largest_n(&refusal));
	if (refusal.asked_all) {
		npumem_error_number(error, "fits_after_compact", refusal.compact);
		npumem_error_number(error, "fits_if_safe", refusal.if_safe);
	}
	if (refusal.w)
		npumem_error_number(error, "better_w", refusal.w);
	if (refusal.start_npu != NPUMEM_ANY)
		npumem_error_number(error, "better_start_npu", refusal.start_npu);
	if (refusal.in_the_way) {
		char name[ERROR_CONTEXT_NAME_BYTES];
		npumem_error_text(error, "in_the_way", error_context_name(context, refusal.in_the_way, name));
		npumem_error_number(error, "offset", tensor_offset(refusal.in_the_way));
		npumem_error_number(error, "bytes", tensor_bytes_per_npu(refusal.in_the_way));
	}
	return NPUMEM_RESOURCE_EXHAUSTED;
}
