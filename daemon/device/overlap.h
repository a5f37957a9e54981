/* Footprints over footprints. A tensor that was placed over others is a guest; the others are its hosts. Hosts are
 * found by the arena's tags, guests by the device's list of them, which is empty unless somebody asked for reuse.
 */
#ifndef DEVICE_OVERLAP_H
#define DEVICE_OVERLAP_H

#include "daemon/device/internal.h"

/* Visits each live tensor (no views), but `except`, whose footprint meets [offset, offset + bytes); return false
 * to stop. False where the visitor stopped. */
bool overlap_each(const struct device *device, int64_t offset, int64_t bytes, const struct tensor *except,
		  bool (*visit)(void *ctx, struct tensor *tensor), void *ctx);

/* Takes what is still free of a new guest's range, and makes it a guest. 0 or -ENOMEM (nothing changed). */
int overlap_enter(struct device *device, struct tensor *guest);
/* Gives back what no other footprint holds of a tensor's range. Cannot fail. */
void overlap_leave(struct device *device, struct tensor *tensor);

/* The counts of all tensors that overlap another, kept until tensors change. -ENOMEM leaves them unknown. */
int overlap_sum(struct device *device, const struct overlap_sums **sums);

#endif
