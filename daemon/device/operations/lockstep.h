/* The hazard of empty blocks: a kernel's output takes its whole footprint, and with it what others keep there.
 * This is the safety rule's second check, made when a kernel starts; nothing relies on the one at allocation.
 *
 * The check of a kernel finds the tensors that it would destroy, on the thread that owns the tensors. The kernel
 * destroys their data when it runs, maybe on another thread. By the order of operations none of them is freed in
 * between, and a tensor that is placed there meanwhile has no data yet. */
#ifndef DEVICE_LOCKSTEP_H
#define DEVICE_LOCKSTEP_H

#include "daemon/device/internal.h"
#include "daemon/device/operations/op.h"

/* Tensors with data in the footprint of a kernel's output, which exist only after unchecked reuse. Zeroed: none.
 */
struct lockstep_victim {
	const struct tensor *out;
	struct tensor *tensor;
};
struct lockstep_victims {
	struct lockstep_victim *all;
	unsigned n, room;
};
void lockstep_deinit(struct device *device, struct lockstep_victims *victims);
/* Host memory that they hold. */
static inline size_t lockstep_bytes(const struct lockstep_victims *victims)
{
	return victims->room * sizeof(*victims->all);
}

/* Whether a kernel may write `out`: 0, or FAILED_PRECONDITION where the data of a tensor lies in its footprint,
 * unless one of the two was placed unchecked; such tensors are added to `victims`. RESOURCE_EXHAUSTED without host
 * memory. */
int lockstep_check(struct device *device, const struct tensor *out, struct lockstep_victims *victims,
		   const struct error_context *context);
/* The kernel will run: there will be something to forget in the victims. */
void lockstep_touch(const struct lockstep_victims *victims);

/* What the hardware would do: poisons every byte of the footprints that is a victim's data or dummy, and lists the
 * data in op->destroyed. On any thread. */
void lockstep_damage(struct device *device, struct op *op, const struct lockstep_victims *victims);

#endif
