/* The bits of written and damaged bytes, along the stretches of a place. A tensor that was once found or made
 * written as a whole is not looked at again; that is kept in the tensor, by whichever thread did so. */
#include "daemon/device/tensors/written.h"

#include <inttypes.h>

#include "daemon/device/geometry/runs.h"

/* Some elements of a place. */
struct part {
	const struct npumem_geometry *geometry;
	const struct npumem_place *place;
	int64_t first, count;
	const struct written_watch *watch;
};

/* A look at them on its way. */
struct look {
	const struct device *device;
	const struct written_watch *watch;
	int64_t pending; /* steps since the watch was asked */
	bool stopped;
};

/* After a series. False where the rest is not wanted. */
static bool look_on(struct look *look, const struct runs_series *series)
{
	look->pending += runs_steps(series);
	if (look->pending < RUNS_STEPS_MAX)
		return true;
	look->pending = 0;
	if (!look->watch)
		device_give_way(look->device);
	look->stopped = look->watch && !look->watch->wanted(look->watch->ctx);
	return !look->stopped;
}

static bool part_is_all(const struct part *part)
{
	return part->count == npumem_place_elements(part->place);
}

static bool part_each(const struct part *part, runs_visit *visit, void *ctx)
{
	if (part_is_all(part))
		return runs_each(part->geometry, part->place, false, visit, ctx);
	return runs_each_of(part->geometry, part->place, part->first, part->count, visit, ctx);
}

static int64_t part_bytes(const struct part *part)
{
	return part->count * (part->place->word_bytes / part->place->lanes);
}

struct tally {
	const struct local *local;
	int64_t written, damaged, lost;
	struct look look;
};

static int64_t count(const uint64_t *words, const struct runs_series *series)
{
	return (int64_t)bits_count_series(words, (uint64_t)series->offset, (uint64_t)series->bytes,
					  (uint64_t)series->n, (uint64_t)series->pitch);
}

static bool tally_written(void *ctx, const struct runs_series *series)
{
	struct tally *tally = ctx;
	tally->written += count(local_written(tally->local, series->npu), series);
	return look_on(&tally->look, series);
}

static bool tally_damaged(void *ctx, const struct runs_series *series)
{
	struct tally *tally = ctx;
	const uint64_t *damaged = local_damaged(tally->local, series->npu);
	const uint64_t *written = local_written(tally->local, series->npu);
	int64_t n = count(damaged, series);
	tally->damaged += n;
	for (int64_t i = 0; n && i < series->n; i++)
		tally->lost += (int64_t)bits_count_but(
			damaged, written, (uint64_t)(series->offset + i * series->pitch), (uint64_t)series->bytes);
	return look_on(&tally->look, series);
}

/* -1 where the rest was not wanted. */
static int64_t unwritten_of(const struct device *device, const struct part *part)
{
	struct tally tally = {.local = &device->local, .look = {.device = device, .watch = part->watch}};
	if (!part_each(part, tally_written, &tally))
		return -1;
	return part_bytes(part) - tally.written;
}

static int64_t damaged_of(const struct device *device, const struct part *part, int64_t *lost)
{
	struct tally tally = {.local = &device->local, .look = {.device = device, .watch = part->watch}};
	if (device->local.n_damaged)
		part_each(part, tally_damaged, &tally);
	*lost = tally.lost;
	return tally.damaged;
}

void written_scan(const struct device *device, const struct npumem_place *place, int64_t *unwritten,
		  int64_t *damaged, int64_t *lost)
{
	const struct part all = {&device->options.geometry, place, 0, npumem_place_elements(place), NULL};
	if (unwritten)
		*unwritten = unwritten_of(device, &all);
	*damaged = damaged_of(device, &all, lost);
}

/* By the stretches that runs_each visits, in half nanoseconds, as measured for both kinds of bits: 4 ns for a row
 * or feature, 1.5 ns for an element that stands alone, and 64 bytes in one step. */
int64_t written_scan_cost(const struct npumem_place *place)
{
	enum { STRETCH_STEPS = 8, ELEMENT_STEPS = 3 };
	int64_t features = place->words_n * place->shape.c;
	bool whole_words = place->shape.n % place->lanes == 0;
	bool rows_touch = place->stride.h == place->shape.w || place->shape.h == 1;
	if (place->stride.w != 1 || !whole_words)
		return features * place->shape.h * place->shape.w * ELEMENT_STEPS;
	return features * (rows_touch ? 1 : place->shape.h) * STRETCH_STEPS +
	       place->blocks.data / RUNS_BYTES_PER_STEP;
}

struct hole {
	const struct local *local;
	int64_t npu, offset;
	struct look look;
};

static bool find_hole(void *ctx, const struct runs_series *series)
{
	struct hole *hole = ctx;
	const uint64_t *written = local_written(hole->local, series->npu);
	for (int64_t i = 0; i < series->n; i++) {
		int64_t offset = series->offset + i * series->pitch;
		int64_t first = (int64_t)bits_first_not(written, true, (uint64_t)offset, (uint64_t)series->bytes);
		if (first < offset + series->bytes) {
			hole->npu = series->npu;
			hole->offset = first;
			return false;
		}
	}
	return look_on(&hole->look, series);
}

static bool has_no_hole(void *ctx, const struct runs_series *series)
{
	struct hole *hole = ctx;
	if (count(local_written(hole->local, series->npu), series) < series->n * series->bytes)
		return false;
	return look_on(&hole->look, series);
}

/* There is a hole: its first byte, in the order of the elements. */
static int refuse(const struct device *device, const struct tensor *tensor, const struct part *part,
		  struct hole *hole, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	bool stopped =
		hole->look.stopped ||
		runs_each_in_order(part->geometry, part->place, part->first, part->count, find_hole, hole) ||
		hole->look.stopped;
	/* All bytes of a tensor that was never written to are missing: they need not be counted. */
	int64_t missing = stopped			 ? -1
			  : tensor_root(tensor)->touched ? unwritten_of(device, part)
							 : part_bytes(part);
	if (missing < 0)
		return NPUMEM_CANCELLED;
	error_context_name(context, tensor, name);
	npumem_error_set(context->error, NPUMEM_FAILED_PRECONDITION,
			 "%s has bytes that were never written: %" PRId64 " of %" PRId64
			 ", the first at offset %" PRId64 " of NPU %" PRId64,
			 name, missing, part_bytes(part), hole->offset, hole->npu);
	npumem_error_text(context->error, "tensor", name);
	npumem_error_number(context->error, "npu", hole->npu);
	npumem_error_number(context->error, "offset", hole->offset);
	npumem_error_number(context->error, "unwritten_bytes", missing);
	return NPUMEM_FAILED_PRECONDITION;
}

int written_check(const struct device *device, struct tensor *tensor, int64_t first, int64_t count,
		  const struct written_watch *watch, const struct error_context *context)
{
	if (tensor_all_written(tensor))
		return 0;
	const struct part part = {&device->options.geometry, TENSOR_PLACE(tensor), first, count, watch};
	struct hole hole = {.local = &device->local, .look = {.device = device, .watch = watch}};
	if (!part_each(&part, has_no_hole, &hole))
		return refuse(device, tensor, &part, &hole, context);
	if (part_is_all(&part))
		written_note(tensor);
	return 0;
}

int64_t written_damaged(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count,
			const struct written_watch *watch, int64_t *lost)
{
	*lost = 0;
	if (!device->local.n_damaged || !tensor_root(tensor)->touched)
		return 0;
	const struct part part = {&device->options.geometry, TENSOR_PLACE(tensor), first, count, watch};
	return damaged_of(device, &part, lost);
}

int written_refuse_lost(const struct tensor *tensor, int64_t lost, const struct error_context *context)
{
	char name[ERROR_CONTEXT_NAME_BYTES];
	error_context_name(context, tensor, name);
	npumem_error_set(context->error, NPUMEM_DATA_LOST,
			 "%s has %" PRId64
			 " bytes that are lost, as the daemon ended while they were written; write "
			 "them again first",
			 name, lost);
	npumem_error_text(context->error, "tensor", name);
	npumem_error_number(context->error, "lost_bytes", lost);
	return NPUMEM_DATA_LOST;
}

void written_doubt(struct tensor *root)
{
	atomic_store_explicit(&root->all_written, false, memory_order_relaxed);
	/* And of all its views, however many they are. */
	atomic_fetch_add_explicit(&root->doubts, 1, memory_order_relaxed);
}
