/* The limits of a ReLU, fused or by itself: values are clipped, never rescaled.
 * none: the container | gen: [0, max] | 1: [-1.0, 1.0] | 6: [0, 6.0], each within the container, which is all that
 * is left where frac_bits exceed it. */
#ifndef DEVICE_LIMITS_H
#define DEVICE_LIMITS_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/operations/kernel.h"

/* Reads relu= (already checked) and sets the limits of results with `frac_bits`. */
void limits_relu(const struct kernel_call *call, int64_t frac_bits, struct requantize *requantize);

#endif
