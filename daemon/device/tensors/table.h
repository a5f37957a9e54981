/* The tensor table: handles to tensors in O(1). A handle is a slot and its generation, so that the handle of a
 * tensor that is gone finds nothing. */
#ifndef DEVICE_TABLE_H
#define DEVICE_TABLE_H

#include "daemon/device/internal.h"

/* A zeroed tensor with a handle of its own; NULL without memory. */
struct tensor *table_add(struct device *device);
void table_remove(struct device *device, struct tensor *tensor);
/* Frees every struct, those of live tensors too. */
void table_deinit(struct device *device);

#endif
