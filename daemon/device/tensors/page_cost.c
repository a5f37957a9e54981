/* Owns nothing. Invariant: a page that the process has written to stays there, unless the memory is a file on a
 * disk: then the system may take it, or a sync make it read-only, at any time. So of a tensor that is known to be
 * all written no page of plain memory faults. */
#include "daemon/device/tensors/page_cost.h"

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

static int64_t pages(const struct device *device, const struct tensor *tensor, int64_t n, bool with_bits)
{
	const struct npumem_place *place = TENSOR_PLACE(tensor);
	int64_t n_npus = npus(device, place, n), bytes = extent(place);
	int64_t each = n_npus ? (n + n_npus - 1) / n_npus : 0;
	int64_t of_npu = least(bytes / PAGE_BYTES + 1, each);

	if (with_bits)
		of_npu += least(bytes / PAGE_OF_BITS_BYTES + 1, each);
	return n_npus * of_npu;
}

int64_t page_cost_write(const struct device *device, const struct tensor *tensor, int64_t n)
{
	bool is_known = tensor_all_written(tensor), is_on_disk = device->options.is_on_disk;

	if (is_known && !is_on_disk)
		return 0;
	return pages(device, tensor, n, !is_known) * (!is_on_disk ? PLAIN_STEPS
						      : is_known  ? SYNCED_STEPS
								  : NEW_ON_DISK_STEPS);
}

int64_t page_cost_read(const struct device *device, const struct tensor *tensor, int64_t n)
{
	bool is_known = tensor_all_written(tensor);

	if (is_known && !device->options.is_on_disk)
		return 0;
	return pages(device, tensor, n, !is_known) * PLAIN_STEPS;
}
