/* Owns nothing. Says a little more than what changes, never less. */
#include "daemon/device/tensors/changes.h"

#include "daemon/device/geometry/runs.h"

static void tell(const struct device *device, const void *from, uint64_t bytes)
{
	uint64_t off = (uint64_t)((const uint8_t *)from - (const uint8_t *)device->local.kept);

	device->changes.before(device->changes.ctx, off, bytes);
}

void changes_tell(const struct device *device, int64_t npu, int64_t offset, int64_t bytes)
{
	const struct local *local = &device->local;
	int64_t first = offset / 64, n = (offset + bytes - 1) / 64 - first + 1;

	if (!changes_are_told(device) || bytes <= 0)
		return;
	tell(device, local_at(local, npu, offset), (uint64_t)bytes);
	tell(device, &local_written(local, npu)[first], (uint64_t)n * sizeof(uint64_t));
	tell(device, &local_damaged(local, npu)[first], (uint64_t)n * sizeof(uint64_t));
	device_give_way(device);
}

void changes_tell_place(const struct device *device, const struct npumem_place *place, bool everywhere)
{
	int64_t n_npus = device->options.geometry.n_npus, from = 0, to = n_npus;

	if (!changes_are_told(device))
		return;
	changes_tell_kept(device);
	if (!everywhere && place->channels_per_npu == 1) {
		from = place->start_npu;
		to = from + place->shape.c;
	}
	for (int64_t npu = from; npu < to; npu++)
		changes_tell(device, npu, place->offset, place->bytes_per_npu);
}

static bool tell_series(void *ctx, const struct runs_series *series)
{
	changes_tell(ctx, series->npu, series->offset, (series->n - 1) * series->pitch + series->bytes);
	return true;
}

void changes_tell_elements(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count)
{
	const struct tensor *root = tensor_root(tensor);
	int64_t elements = tensor_elements(tensor);

	if (!changes_are_told(device))
		return;
	if (first < 0 || first > elements)
		first = 0, count = -1;
	if (count < 0 || count > elements - first)
		count = elements - first;
	if (count == elements)
		changes_tell_place(device, TENSOR_PLACE(root), false);
	else if (count)
		runs_each_of(&device->options.geometry, TENSOR_PLACE(tensor), first, count, tell_series,
			     (void *)(uintptr_t)device);
}

void changes_tell_kept(const struct device *device)
{
	if (changes_are_told(device))
		tell(device, device->local.kept, sizeof(*device->local.kept));
}

/* ---- after ---- */

/* In pieces, as each may wait for a disk: a thread that waits must not keep others from running for all of them.
 */
void changes_made_kept(const struct device *device, const void *from, size_t bytes)
{
	enum { PIECE_BYTES = 63 << 10 }; /* with what a log puts before it, less than 64 KiB */
	uint64_t off = (uint64_t)((const uint8_t *)from - (const uint8_t *)device->local.kept);

	if (!changes_are_told_after(device))
		return;
	for (; bytes > PIECE_BYTES; off += PIECE_BYTES, bytes -= PIECE_BYTES) {
		device->changes.after(device->changes.after_ctx, off, PIECE_BYTES);
		device_give_way(device);
	}
	device->changes.after(device->changes.after_ctx, off, bytes);
}

void changes_made(const struct device *device, int64_t npu, int64_t offset, int64_t bytes)
{
	const struct local *local = &device->local;
	int64_t first = offset / 64, n = (offset + bytes - 1) / 64 - first + 1;

	if (!changes_are_told_after(device) || bytes <= 0)
		return;
	changes_made_kept(device, local_at(local, npu, offset), (size_t)bytes);
	changes_made_kept(device, &local_written(local, npu)[first], (size_t)n * sizeof(uint64_t));
	if (local->kept->may_be_damaged) {
		changes_made_kept(device, &local->kept->may_be_damaged, sizeof(local->kept->may_be_damaged));
		changes_made_kept(device, &local_damaged(local, npu)[first], (size_t)n * sizeof(uint64_t));
	}
	device_give_way(device);
}

static bool is_short(int64_t gap)
{
	return gap <= CHANGES_GAP_BYTES;
}

static bool made_series(void *ctx, const struct runs_series *series)
{
	int64_t together = is_short(series->pitch - series->bytes) ? series->n : 1;

	for (int64_t i = 0; i < series->n; i += together)
		changes_made(ctx, series->npu, series->offset + i * series->pitch,
			     (together - 1) * series->pitch + series->bytes);
	return true;
}

/* Whether the gaps within a row are so short that one record has the whole row. */
static bool rows_are_whole(const struct npumem_place *place)
{
	return place->shape.w == 1 || is_short((place->stride.w - 1) * place->word_bytes);
}

/* Bytes of one record: of a row, or of a word where rows_are_whole is false. */
static int64_t stretch_bytes(const struct npumem_place *place)
{
	return rows_are_whole(place) && place->shape.w > 1 ? place->shape.w * place->stride.w * place->word_bytes
							   : place->word_bytes;
}

/* A few elements may stand as far apart as an NPU is long: then records of each stretch are less than all that
 * lies between the first and the last. */
static bool is_sparse(const struct npumem_place *place)
{
	int64_t rows = place->words_n * place->channels_per_npu * place->shape.h;
	int64_t stretches = rows_are_whole(place) ? rows : rows * place->shape.w;

	return place->bytes_per_npu > stretches * (stretch_bytes(place) + CHANGES_GAP_BYTES);
}

void changes_made_place(const struct device *device, const struct npumem_place *place)
{
	int64_t n_npus = device->options.geometry.n_npus, from = 0, to = n_npus;

	if (!changes_are_told_after(device))
		return;
	if (is_sparse(place)) {
		runs_each(&device->options.geometry, place, true, made_series, (void *)(uintptr_t)device);
		return;
	}
	if (place->channels_per_npu == 1) {
		from = place->start_npu;
		to = from + place->shape.c;
	}
	for (int64_t npu = from; npu < to; npu++)
		changes_made(device, npu, place->offset, place->bytes_per_npu);
}

void changes_made_elements(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count)
{
	int64_t elements = tensor_elements(tensor);

	if (!changes_are_told_after(device))
		return;
	if (first < 0 || first > elements)
		first = 0, count = -1;
	if (count < 0 || count > elements - first)
		count = elements - first;
	if (count == elements && !tensor->base)
		changes_made_place(device, TENSOR_PLACE(tensor));
	else if (count)
		runs_each_of(&device->options.geometry, TENSOR_PLACE(tensor), first, count, made_series,
			     (void *)(uintptr_t)device);
}

/* A copy of the bytes and their bits, and of each stretch what it takes to begin one. */
static int64_t made_cost(const struct device *device, const struct tensor *tensor, int64_t n)
{
	enum { STRETCH_STEPS = 400, BYTES_PER_STEP = 2 };
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	int64_t n_npus = device->options.geometry.n_npus, stretches = n_npus, bytes;
	if (n < tensor_elements(tensor) || tensor->base || is_sparse(place)) {
		int64_t words = rows_are_whole(place) ? place->shape.w : 1;
		stretches = n / words + n_npus;
		bytes = (n / words + 1) * stretch_bytes(place);
	} else {
		/* changes_made_place reports all of it, with its gaps. */
		bytes = place->bytes_per_npu * (place->channels_per_npu == 1 ? place->shape.c : n_npus);
	}
	return (n < stretches ? n : stretches) * STRETCH_STEPS + bytes / BYTES_PER_STEP;
}

int64_t changes_cost(const struct device *device, const struct tensor *tensor, int64_t n)
{
	enum { PAGE_BYTES = 4096, PAGE_STEPS = 1600, PAGES_MIN = 3 /* of bytes and their bits */ };
	if (!changes_are_told(device) && !changes_are_told_after(device))
		return 0;
	const struct npumem_place *place = TENSOR_PLACE(tensor_root(tensor));
	if (!changes_are_told(device))
		return made_cost(device, tensor, n);
	/* The whole footprint is told, however few elements it has: the pages between them, too. */
	return device->options.geometry.n_npus * (place->bytes_per_npu / PAGE_BYTES + PAGES_MIN) * PAGE_STEPS;
}

void device_tell(struct device *device, void (*before)(void *ctx, uint64_t off, uint64_t bytes), void *ctx)
{
	device->changes.before = before;
	device->changes.ctx = ctx;
	atomic_store_explicit(&device->changes.is_on, true, memory_order_release);
	changes_tell_kept(device);
}

void device_tell_after(struct device *device, void (*after)(void *ctx, uint64_t off, uint64_t bytes), void *ctx)
{
	device->changes.after_ctx = ctx;
	device->changes.after = after;
}

void device_tell_no_more(struct device *device)
{
	atomic_store_explicit(&device->changes.is_on, false, memory_order_release);
}
