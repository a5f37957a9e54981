/* Convolution by rows: the input is laid out with its padding, once for each phase of the stride, so that every
 * tap is one long row under all outputs of a feature. For depthwise convolutions and others with few output
 * channels in a group, at every size of features. */
#ifndef DEVICE_PLANES_H
#define DEVICE_PLANES_H

#include "daemon/device/kernel_support/convolution.h"

/* True where this is the better way: few output channels, and padding and stride that do not dwarf the input. */
bool planes_fit(const struct convolution *convolution, const struct phase *phase);
/* As convolution_scratch_bytes and convolution_run. */
size_t planes_scratch_bytes(const struct convolution *convolution, const struct phase *phase);
bool planes_run(const struct convolution *convolution, const struct phase *phase);

#endif
