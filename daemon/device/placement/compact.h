/* Compaction, looked at without making it. */
#ifndef DEVICE_COMPACT_H
#define DEVICE_COMPACT_H

#include "daemon/device/internal.h"

/* Visits the free extents [from, to) that there would be after device_compact, lowest first. */
void compact_each_gap(struct device *device, void (*visit)(void *ctx, int64_t from, int64_t to), void *ctx);

#endif
