/* All NPUs write the same offsets at the same time, whether they have a feature there or not. */
#include "daemon/device/operations/lockstep.h"

#include <inttypes.h>

#include "daemon/device/geometry/meet.h"
#include "daemon/device/operations/op_rule.h"
#include "daemon/device/reuse/overlap.h"

struct lockstep {
	struct device *device;
	const struct tensor *out;
	struct lockstep_victims *victims;
	const struct error_context *context;
	int status;
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
			return npumem_error_set(lockstep->context->error, NPUMEM_RESOURCE_EXHAUSTED,
						"the daemon is out of host memory");
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
			 const struct meet_range *range)
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

static bool judge_neighbour(void *ctx, struct tensor *victim)
{
	struct lockstep *lockstep = ctx;
	struct meet_range range;
	if (!meet_first(&lockstep->device->options.geometry, &lockstep->out->place, MEET_FOOTPRINT, &victim->place,
			MEET_DATA, &range))
		return true;
	if (victim->reuse == NPUMEM_UNCHECKED || tensor_root(lockstep->out)->reuse == NPUMEM_UNCHECKED)
		lockstep->status = add_victim(lockstep, victim);
	else
		lockstep->status = refuse_hazard(lockstep, victim, &range);
	return lockstep->status == 0;
}

int lockstep_check(struct device *device, const struct tensor *out, struct lockstep_victims *victims,
		   const struct error_context *context)
{
	struct lockstep lockstep = {.device = device, .out = out, .victims = victims, .context = context};
	overlap_each(device, out->place.offset, out->place.bytes_per_npu, tensor_root(out), judge_neighbour,
		     &lockstep);
	return lockstep.status;
}

void lockstep_touch(const struct lockstep_victims *victims)
{
	for (unsigned i = 0; i < victims->n; i++)
		victims->all[i].tensor->touched = true;
}

struct poisoning {
	struct device *device;
	struct op_destroyed *destroyed; /* NULL: there are more than can be listed */
};

static bool poison_range(void *ctx, const struct meet_range *range)
{
	struct poisoning *poisoning = ctx;
	local_poison(&poisoning->device->local, range->npu, range->offset, range->bytes);
	if (!poisoning->destroyed)
		return true;
	if (!poisoning->destroyed->total_bytes) {
		poisoning->destroyed->npu = range->npu;
		poisoning->destroyed->offset = range->offset;
		poisoning->destroyed->bytes = range->bytes;
	}
	poisoning->destroyed->total_bytes += range->bytes;
	return true;
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

void lockstep_damage(struct device *device, struct op *op, const struct lockstep_victims *victims)
{
	unsigned n_more = 0;
	for (unsigned i = 0; i < victims->n; i++) {
		const struct lockstep_victim *victim = &victims->all[i];
		struct poisoning poisoning = {device, note_destroyed(op, victim->tensor)};
		n_more += !poisoning.destroyed;
		meet_each(&device->options.geometry, &victim->out->place, MEET_FOOTPRINT, &victim->tensor->place,
			  MEET_DATA, poison_range, &poisoning);
	}
	if (n_more)
		op_warn(op, "%u more tensors were destroyed than are listed", n_more);
}
