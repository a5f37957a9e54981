/* The tensor table: handles to tensors in O(1). A handle is a slot and its generation, so that the handle of a
 * tensor that is gone finds nothing. */
#ifndef DEVICE_TABLE_H
#define DEVICE_TABLE_H

#include "daemon/device/internal.h"

/* A zeroed tensor with a handle of its own; NULL without memory. */
struct tensor *table_add(struct device *device);
void table_remove(struct device *device, struct tensor *tensor);

/* Whether a handle can be given again to the tensor that had it: its slot is there, and neither used nor to be. */
bool table_can_put(const struct device *device, uint64_t handle);
/* A zeroed tensor under this handle, which can. */
struct tensor *table_put(struct device *device, uint64_t handle);
/* Undoes that: its slot is neither used nor to be. */
void table_take_back(struct tensor *tensor);

/* Frees every struct, and what live tensors hold. */
void table_deinit(struct device *device);

#endif
