/* The device with its tensors as SVG: columns are NPUs, offsets go down, blocks are coloured by kind. */
#ifndef CTL_CORE_SVG_DEVICE_H
#define CTL_CORE_SVG_DEVICE_H

#include <stdio.h>

#include <npumem/client.h>

/* Heights are not to scale, so that a small tensor can be seen. `hidden`: the device has tensors that the list
 * lacks. 0 or RESOURCE_EXHAUSTED. */
int svg_device_draw(FILE *out, const struct npumem_geometry *geometry, const struct npumem_tensor *const *tensors,
		    unsigned n, uint32_t uid, bool hidden, struct npumem_error *error);

#endif
