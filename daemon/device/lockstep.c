/* All NPUs write the same offsets at the same time, whether they have a feature there or not. */
#include "daemon/device/lockstep.h"

#include <inttypes.h>

#include "daemon/device/meet.h"
#include "daemon/device/op_rule.h"
#include "daemon/device/overlap.h"

struct lockstep {
	struct device *device;
	struct op *op;
	const struct tensor *out;
	const struct asker *asker;
	unsigned n_more;
	int status;
};

static struct op_destroyed *note_destroyed(struct lockstep *lockstep, struct tensor *victim)
{
	struct op *op = lockstep->op;
	for (unsigned i = 0; i < op->n_destroyed; i++)
		if (op->destroyed[i].tensor == victim)
			return &op->destroyed[i];
	if (op->n_destroyed == OP_DESTROYED_MAX) {
		lockstep->n_more++;
		return NULL;
	}
	op->destroyed[op->n_destroyed] = (struct op_destroyed){.tensor = victim};
	return &op->destroyed[op->n_destroyed++];
}

static int refuse_hazard(const struct lockstep *lockstep, const struct tensor *victim,
			 const struct meet_range *range)
{
	char name[ASKER_NAME_BYTES], out[ASKER_NAME_BYTES];
	struct npumem_error *error = lockstep->asker->error;
	asker_name(lockstep->asker, victim, name);
	npumem_error_set(error, NPUMEM_FAILED_PRECONDITION,
			 "a kernel that writes %s may destroy data of %s on NPU %" PRId64 ", bytes %" PRId64
			 " to %" PRId64,
			 asker_name(lockstep->asker, lockstep->out, out), name, range->npu, range->offset,
			 range->offset + range->bytes - 1);
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
		return true;
	lockstep->status = refuse_hazard(lockstep, victim, &range);
	return false;
}

int lockstep_check(struct device *device, const struct tensor *out, const struct asker *asker)
{
	struct lockstep lockstep = {.device = device, .out = out, .asker = asker};
	overlap_each(device, out->place.offset, out->place.bytes_per_npu, tensor_root(out), judge_neighbour,
		     &lockstep);
	return lockstep.status;
}

struct poisoning {
	struct device *device;
	struct op_destroyed *destroyed;
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

static bool poison_neighbour(void *ctx, struct tensor *victim)
{
	struct lockstep *lockstep = ctx;
	struct meet_range range;
	const struct npumem_geometry *geometry = &lockstep->device->options.geometry;
	if (!meet_first(geometry, &lockstep->out->place, MEET_FOOTPRINT, &victim->place, MEET_DATA, &range))
		return true;
	struct poisoning poisoning = {lockstep->device, note_destroyed(lockstep, victim)};
	victim->touched = true;
	meet_each(geometry, &lockstep->out->place, MEET_FOOTPRINT, &victim->place, MEET_DATA, poison_range,
		  &poisoning);
	return true;
}

void lockstep_damage(struct device *device, struct op *op, const struct tensor *out)
{
	struct lockstep lockstep = {.device = device, .op = op, .out = out};
	overlap_each(device, out->place.offset, out->place.bytes_per_npu, tensor_root(out), poison_neighbour,
		     &lockstep);
	if (lockstep.n_more)
		op_warn(op, "%u more tensors were destroyed than are listed", lockstep.n_more);
}
