/* Where views lie, and how they belong to their base. */
#ifndef DEVICE_VIEW_H
#define DEVICE_VIEW_H

#include "daemon/device/internal.h"

/* Where a slice of a place lies: 0 or INVALID. */
int view_slice_place(const struct npumem_geometry *geometry, const struct npumem_place *base,
		     const struct device_slice *slice, struct npumem_place *out,
		     const struct error_context *context);
/* What follows from a view's shape, start and strides. It has no padding and no empty blocks of its own. */
void view_settle(const struct npumem_geometry *geometry, struct npumem_place *place);
/* Whether a view of this type may have these frac_bits: 0 or INVALID. */
int view_check_format(int dtype, int64_t frac_bits, const struct error_context *context);
/* Makes a tensor of the table, which has its place and range, a view of a root. */
void view_join(struct device *device, struct tensor *view, struct tensor *root);

#endif
