/* All NPUs write the same offsets at the same time, whether they have a feature there or not. */
#include "daemon/device/operations/lockstep.h"

#include <inttypes.h>

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/operations/op_rule.h"
#include "daemon/device/tensors/changes.h"
#include "daemon/device/tensors/meetings.h"

struct lockstep {
	struct device *device;
	const struct tensor *out;
	struct lockstep_victims *victims;
	const struct error_context *context;
};

void lockstep_deinit(struct device *device, struct lockstep_victims *victims)
{
	heap_free(device->heap, victims->all);
	*victims = (struct lockstep_victims){.n = 0};
}

static int add_victim(const struct lockstep *lockstep, struct tensor *tensor)
{
	struct lockstep_victims *victims = lockstep->victims;
	const struct heap *heap = lockstep->device->heap;
	if (victims->n == victims->room) {
		enum { ROOM_AT_FIRST = 8 };
		unsigned room = victims->room ? 2 * victims->room : ROOM_AT_FIRST;
		struct lockstep_victim *all = heap_zalloc(heap, room, sizeof(*all));
		if (!all)
			return heap_exhausted(lockstep->context->error);
		if (victims->n)
			memcpy(all, victims->all, victims->n * sizeof(*all));
		heap_free(heap, victims->all);
		victims->all = all;
		victims->room = room;
	}
	victims->all[victims->n++] = (struct lockstep_victim){lockstep->out, tensor};
	return 0;
}

static int refuse_hazard(const struct lockstep *lockstep, const struct tensor *victim,
			 const struct intersect_range *range)
{
	char name[ERROR_CONTEXT_NAME_BYTES], out[ERROR_CONTEXT_NAME_BYTES];
	struct npumem_error *error = lockstep->context->error;
	error_context_name(lockstep->context, victim, name);
	npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
			 "a kernel that writes %s may destroy data of %s on NPU %" PRId64 ", bytes %" PRId64
			 " to %" PRId64,
			 error_context_name(lockstep->context, lockstep->out, out), name, range->npu,
			 range->offset, range->offset + range->bytes - 1);
	npumem_error_text(error, "tensor", name);
	npumem_error_number(error, "npu", range->npu);
	npumem_error_number(error, "offset", range->offset);
	npumem_error_number(error, "bytes", range->bytes);
	return NPUMEM_FAILED_PRECONDITION;
}

int lockstep_check(struct device *device, const struct tensor *out, struct lockstep_victims *victims,
		   const struct error_context *context)
{
	struct lockstep lockstep = {device, out, victims, context};
	struct intersect_range range;
	int status = 0;
	for (const struct meeting *m = meetings_first(out); m && !status; m = m->next) {
		/* What is still being placed has no data yet. */
		if (m->other->placing ||
		    !intersect_first(&device->options.geometry, TENSOR_PLACE(out), KINDS_FOOTPRINT,
				     TENSOR_PLACE(m->other), KINDS_DATA, &range))
			continue;
		if (m->other->reuse == NPUMEM_UNCHECKED || tensor_root(out)->reuse == NPUMEM_UNCHECKED)
			status = add_victim(&lockstep, m->other);
		else
			status = refuse_hazard(&lockstep, m->other, &range);
	}
	return status;
}

void lockstep_touch(const struct lockstep_victims *victims)
{
	for (unsigned i = 0; i < victims->n; i++)
		victims->all[i].tensor->touched = true;
}

/* The entry of a tensor that an earlier output destroyed too, or a new one. */
static struct op_destroyed *note_destroyed(struct op *op, struct tensor *victim)
{
	for (unsigned i = 0; i < op->n_destroyed; i++)
		if (op->destroyed[i].tensor == victim)
			return &op->destroyed[i];
	if (op->n_destroyed == OP_DESTROYED_MAX)
		return NULL;
	op->destroyed[op->n_destroyed] = (struct op_destroyed){.tensor = victim};
	return &op->destroyed[op->n_destroyed++];
}

/* A victim may have millions of ranges. */
static void give_way(const struct device *device, unsigned *pending)
{
	enum { RANGES = 1000 };
	if (++*pending % RANGES == 0)
		device_give_way(device);
}

/* Lists what is data; what dummies are, nobody misses. False where it cannot be listed. */
static bool list_data(struct device *device, struct op *op, const struct lockstep_victim *victim)
{
	struct intersect walk;
	struct intersect_range range;
	struct op_destroyed *destroyed = NULL;
	unsigned pending = 0;
	intersect_begin(&walk, &device->options.geometry, TENSOR_PLACE(victim->out), KINDS_FOOTPRINT,
			TENSOR_PLACE(victim->tensor), NPUMEM_BYTE_DATA);
	while (intersect_next(&walk, &range)) {
		if (!destroyed && !(destroyed = note_destroyed(op, victim->tensor)))
			return false;
		if (!destroyed->total_bytes) {
			destroyed->npu = range.npu;
			destroyed->offset = range.offset;
			destroyed->bytes = range.bytes;
		}
		destroyed->total_bytes += range.bytes * range.n_npus;
		give_way(device, &pending);
	}
	return true;
}

static void tell_range(const struct device *device, const struct intersect_range *range)
{
	for (int64_t npu = range->npu; npu < range->npu + range->n_npus; npu++)
		changes_made(device, npu, range->offset, range->bytes);
}

/* Joins ranges with short gaps, and tells of a range when the next one cannot be joined. Without this, elements of
 * one byte with gaps of one byte would take a record each. */
static void tell_poisoned(const struct device *device, struct intersect_range *told,
			  const struct intersect_range *range)
{
	int64_t gap = range->offset - told->offset - told->bytes;
	if (told->bytes && told->npu == range->npu && told->n_npus == range->n_npus && gap >= 0 &&
	    gap <= CHANGES_GAP_BYTES) {
		told->bytes += gap + range->bytes;
		return;
	}
	tell_range(device, told);
	*told = *range;
}

static void poison(struct device *device, const struct lockstep_victim *victim)
{
	struct intersect walk;
	struct intersect_range range, told = {.bytes = 0};
	unsigned pending = 0;
	intersect_begin(&walk, &device->options.geometry, TENSOR_PLACE(victim->out), KINDS_FOOTPRINT,
			TENSOR_PLACE(victim->tensor), KINDS_DATA);
	while (intersect_next(&walk, &range)) {
		for (int64_t npu = range.npu; npu < range.npu + range.n_npus; npu++)
			local_poison(&device->local, npu, range.offset, range.bytes);
		tell_poisoned(device, &told, &range);
		give_way(device, &pending);
	}
	tell_range(device, &told);
}

void lockstep_damage(struct device *device, struct op *op, const struct lockstep_victims *victims)
{
	unsigned n_more = 0;
	for (unsigned i = 0; i < victims->n; i++) {
		atomic_fetch_add_explicit(&tensor_root(victims->all[i].tensor)->version, 1, memory_order_relaxed);
		n_more += !list_data(device, op, &victims->all[i]);
		poison(device, &victims->all[i]);
	}
	if (n_more)
		op_warn(op, "%u more tensors were destroyed than are listed", n_more);
}
