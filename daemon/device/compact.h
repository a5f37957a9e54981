/* Compaction, looked at without making it. */
#ifndef DEVICE_COMPACT_H
#define DEVICE_COMPACT_H

#include "daemon/device/internal.h"

/* The largest size that there would be room for at a multiple of `align`, after device_compact. */
int64_t compact_room(struct device *device, int64_t align);

#endif
