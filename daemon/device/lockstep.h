/* The hazard of empty blocks: a kernel's output takes its whole footprint, and with it what others keep there.
 * This is the safety rule's second check, made when a kernel starts; nothing relies on the one at allocation. */
#ifndef DEVICE_LOCKSTEP_H
#define DEVICE_LOCKSTEP_H

#include "daemon/device/internal.h"
#include "daemon/device/op.h"

/* Whether a kernel may write `out`: 0, or FAILED_PRECONDITION where the data of a tensor lies in its footprint,
 * unless one of the two was placed unchecked. */
int lockstep_check(struct device *device, const struct tensor *out, const struct asker *asker);

/* What the hardware would do: poisons every byte of the footprint that is another tensor's data, and lists it in
 * op->destroyed. Such tensors exist only after unchecked reuse. */
void lockstep_damage(struct device *device, struct op *op, const struct tensor *out);

#endif
