/* Owns nothing. Invariant: a page that the process has written to stays there, unless the memory is a file on a
 * disk: then the system may take it, or a sync make it read-only, at any time. So of a tensor that is known to be
 * all written no page of plain memory faults. */
#include "daemon/device/tensors/page_cost.h"

#include "daemon/device/geometry/runs.h"
#include "daemon/device/least.h"

/* In half nanoseconds, as measured (tests/integration/test_attack_pages.py): the first write to a page of plain
 * memory and the first read of a page take 2 us; the first write after a sync takes 4 us. The first write to a
 * page of a disk's file may find blocks to convert, which once took 255 ms, so that each one is long. */
enum { PLAIN_STEPS = 4000, SYNCED_STEPS = 8000, NEW_ON_DISK_STEPS = 400000 };
enum { PAGE_BYTES = 4096, PAGE_OF_BITS_BYTES = 8 * PAGE_BYTES };

/* Bytes from the first to the last element that an NPU has. */
static int64_t extent(const struct npumem_place *place)
{
	const struct npumem_dims *stride = &place->stride;

	return ((place->words_n - 1) * stride->n + (place->channels_per_npu - 1) * stride->c +
		(place->shape.h - 1) * stride->h + (place->shape.w - 1) * stride->w + 1) *
	       place->word_bytes;
}

/* How many NPUs n elements one after the other may lie on. */
static int64_t npus(const struct device *device, const struct npumem_place *place, int64_t n)
{
	int64_t channels = least(place->shape.c, n / (place->shape.h * place->shape.w) + 2);

	return least(least(channels, n), device->options.geometry.n_npus);
}

/* `page_bytes`: the bytes of local memory that a page stands for. */
static int64_t pages(const struct device *device, const struct tensor *tensor, int64_t n, int64_t page_bytes)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	int64_t n_npus = npus(device, place, n);
	int64_t each = n_npus ? (n + n_npus - 1) / n_npus : 0;

	return n_npus * least(extent(place) / page_bytes + 1, each);
}

struct look {
	const struct device *device;
	bool with_bits;
	unsigned n;
};

static bool are_there(void *ctx, const struct runs_series *series)
{
	enum { LOOKS_MAX = 8 };
	struct look *look = ctx;
	const struct local *local = &look->device->local;
	bool (*there)(const void *, size_t) = look->device->options.are_there;
	size_t bytes = (size_t)((series->n - 1) * series->pitch + series->bytes), of_bits = bytes / 8 + 1;
	int64_t npu = series->npu, at = series->offset / 8;

	return look->n++ < LOOKS_MAX && there(local_at(local, npu, series->offset), bytes) &&
	       (!look->with_bits || there((uint8_t *)local_written(local, npu) + at, of_bits)) &&
	       (!local->n_damaged || there((uint8_t *)local_damaged(local, npu) + at, of_bits));
}

/* What is long in any case, or is on many NPUs, is not looked for. */
static bool may_wait_for_disk(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n,
			      bool with_bits)
{
	struct look look = {device, with_bits, 0};

	/* Is refused later. */
	if (first < 0 || first > tensor_elements(tensor) - n)
		return false;
	return !runs_each_of(&device->options.geometry, TENSOR_PLACE(tensor), first, n, are_there, &look);
}

static int64_t cost(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n,
		    bool writes)
{
	bool is_known = tensor_all_written(tensor), is_on_disk = device->options.are_there;
	bool with_bits = writes || !is_known;

	if (is_known && !is_on_disk)
		return 0;
	int64_t steps = !is_on_disk || !writes ? PLAIN_STEPS : is_known ? SYNCED_STEPS : NEW_ON_DISK_STEPS;
	int64_t n_pages = pages(device, tensor, n, PAGE_BYTES);
	if (with_bits)
		n_pages += pages(device, tensor, n, PAGE_OF_BITS_BYTES);
	int64_t all = n_pages * steps;
	if (is_on_disk && all < NEW_ON_DISK_STEPS && may_wait_for_disk(device, tensor, first, n, with_bits))
		return NEW_ON_DISK_STEPS;
	return all;
}

int64_t page_cost_write(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n)
{
	return cost(device, tensor, first, n, true);
}

int64_t page_cost_read(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n)
{
	return cost(device, tensor, first, n, false);
}

int64_t page_cost_scan(const struct device *device, const struct tensor *tensor)
{
	if (device->options.are_there)
		return NEW_ON_DISK_STEPS;
	return pages(device, tensor, tensor_elements(tensor), PAGE_OF_BITS_BYTES) * PLAIN_STEPS;
}
