#include "daemon/device/written.h"

#include <inttypes.h>

#include "daemon/device/runs.h"

struct hole {
	const struct local *local;
	int64_t npu, offset;
};

static bool find_hole(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct hole *hole = ctx;
	uint64_t first = bits_first_not(local_written(hole->local, npu), true, (uint64_t)offset, (uint64_t)bytes);
	if ((int64_t)first == offset + bytes)
		return true;
	hole->npu = npu;
	hole->offset = (int64_t)first;
	return false;
}

bool written_all(struct device *device, const struct tensor *tensor)
{
	struct hole hole = {.local = &device->local};
	if (tensor->all_written || tensor_root(tensor)->all_written)
		return true;
	return runs_each(&device->options.geometry, &tensor->place, false, find_hole, &hole);
}

static int refuse(const struct device *device, const struct tensor *tensor, const struct hole *hole,
		  const struct asker *asker)
{
	char name[ASKER_NAME_BYTES];
	int64_t missing = written_missing(device, tensor);
	asker_name(asker, tensor, name);
	npumem_error_set(asker->error, NPUMEM_FAILED_PRECONDITION,
			 "%s has bytes that were never written: %" PRId64 " of %" PRId64
			 ", the first at offset %" PRId64 " of NPU %" PRId64,
			 name, missing, tensor->place.blocks.data, hole->offset, hole->npu);
	npumem_error_text(asker->error, "tensor", name);
	npumem_error_number(asker->error, "npu", hole->npu);
	npumem_error_number(asker->error, "offset", hole->offset);
	npumem_error_number(asker->error, "unwritten_bytes", missing);
	return NPUMEM_FAILED_PRECONDITION;
}

int written_check(struct device *device, struct tensor *tensor, const struct asker *asker)
{
	struct hole hole = {.local = &device->local};
	if (tensor->all_written || tensor_root(tensor)->all_written)
		return 0;
	if (!runs_each(&device->options.geometry, &tensor->place, false, find_hole, &hole))
		return refuse(device, tensor, &hole, asker);
	tensor->all_written = true;
	return 0;
}

int written_check_of(struct device *device, struct tensor *tensor, int64_t first, int64_t count,
		     const struct asker *asker)
{
	struct hole hole = {.local = &device->local};
	if (count == npumem_place_elements(&tensor->place))
		return written_check(device, tensor, asker);
	if (tensor->all_written || tensor_root(tensor)->all_written)
		return 0;
	if (!runs_each_of(&device->options.geometry, &tensor->place, first, count, find_hole, &hole))
		return refuse(device, tensor, &hole, asker);
	return 0;
}

struct tally {
	const struct local *local;
	int64_t bits;
};

static bool tally_written(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct tally *tally = ctx;
	tally->bits += (int64_t)bits_count(local_written(tally->local, npu), (uint64_t)offset, (uint64_t)bytes);
	return true;
}

static bool tally_damaged(void *ctx, int64_t npu, int64_t offset, int64_t bytes)
{
	struct tally *tally = ctx;
	tally->bits += (int64_t)bits_count(local_damaged(tally->local, npu), (uint64_t)offset, (uint64_t)bytes);
	return true;
}

int64_t written_missing(const struct device *device, const struct tensor *tensor)
{
	struct tally tally = {.local = &device->local};
	if (tensor->all_written || tensor_root(tensor)->all_written)
		return 0;
	runs_each(&device->options.geometry, &tensor->place, false, tally_written, &tally);
	return tensor->place.blocks.data - tally.bits;
}

int64_t written_damaged(const struct device *device, const struct tensor *tensor)
{
	struct tally tally = {.local = &device->local};
	if (device->local.n_damaged)
		runs_each(&device->options.geometry, &tensor->place, false, tally_damaged, &tally);
	return tally.bits;
}
