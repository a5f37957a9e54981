/* The device with its tensors as SVG: columns are NPUs, offsets go down, colours are tensors, hatches are kinds.
 */
#ifndef CTL_CORE_SVG_DEVICE_H
#define CTL_CORE_SVG_DEVICE_H

#include "client/ctl/core/pictures/svg.h"

/* How the device is to be drawn. */
struct svg_device {
	bool to_scale; /* else small tensors are drawn larger than they are, so that they can be seen */
	bool hidden;   /* the device has tensors that the list lacks */
	uint32_t uid;  /* whose tensors are named without it */
};

void svg_device_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		     unsigned n, const struct svg_device *how);

#endif
