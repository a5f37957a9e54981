/* Convolution by micro-kernels: features are packed, blocks of output channels by strips of pixels are summed in
 * registers, and each block is rounded and stored as features, which lie planar again.
 *
 * Weights are packed first, then each group's data; from there on every tile (a strip of a group) is summed and
 * stored by itself, with a workspace of its own. */
#ifndef DEVICE_CONV_H
#define DEVICE_CONV_H

#include "daemon/device/kernel_support/convolution.h"

/* False where another way is to be taken: windows that dwarf the input. */
bool conv_fits(const struct convolution *convolution, const struct phase *phase);
/* As convolution_scratch_bytes and convolution_run. */
size_t conv_scratch_bytes(const struct convolution *convolution, const struct phase *phase);
bool conv_run(const struct convolution *convolution, const struct phase *phase);

#endif
