/* Footprints over footprints. A tensor that was placed over others is a guest; the others are its hosts. It is a
 * guest as long as it shares quanta with one of them. */
#ifndef DEVICE_OVERLAP_H
#define DEVICE_OVERLAP_H

#include "daemon/device/internal.h"

/* Gives up what is kept for guests, not the tensors. */
void overlap_deinit(struct device *device);

/* Takes what is still free of a new guest's range, and makes it a guest. 0 or -ENOMEM (nothing changed). */
int overlap_enter(struct device *device, struct tensor *guest);
/* Makes an ordinary tensor of a guest that shares quanta with nothing. overlap_enter leaves that to its callers,
 * as a state is restored tensor by tensor. Cannot fail. */
void overlap_settle(struct device *device, struct tensor *tensor);
/* The same for all guests. */
void overlap_settle_all(struct device *device);
/* Gives back what no other footprint holds of a tensor's range. A guest that shared quanta with nothing else
 * becomes an ordinary tensor. Cannot fail. */
void overlap_leave(struct device *device, struct tensor *tensor);

/* Whether compaction would leave it where it is: it is pinned, or shares quanta with another one. */
bool overlap_is_immovable(const struct device *device, const struct tensor *tensor);
/* Counts a tensor that has its place, and those that share quanta with it, as immovable where they are. To be
 * called when a tensor has got its place. overlap_leave takes back what follows from the one that leaves. */
void overlap_count_immovable(struct device *device, struct tensor *tensor);

#endif
