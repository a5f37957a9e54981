/* Convolution by micro-kernels: features are packed, blocks of output channels by strips of pixels are summed in
 * registers, and each block is rounded and stored as features, which lie planar again.
 *
 * Weights are packed first, then each group's data; from there on every tile (a strip of a group) is summed and
 * stored by itself, with a workspace of its own. */
#ifndef DEVICE_CONV_H
#define DEVICE_CONV_H

#include "daemon/device/kernel_support/windows/convolution.h"

/* False where another way is to be taken: windows that dwarf the input, or no taps at all. */
bool conv_fits(const struct convolution *convolution, const struct phase *phase);
/* The rest is for a phase that fits, of a convolution that is by_engine. */

/* The pack of a phase's weights, of a multiple of 64 bytes; false where it is no longer wanted. */
size_t conv_pack_bytes(const struct convolution *convolution, const struct phase *phase);
bool conv_pack_weights(const struct convolution *convolution, const struct phase *phase, void *pack);
/* About how many element steps a run takes. */
int64_t conv_steps(const struct convolution *convolution, const struct phase *phase);
/* As convolution_scratch_bytes and convolution_run; weights are those of convolution->pack. */
size_t conv_scratch_bytes(const struct convolution *convolution, const struct phase *phase);
bool conv_run(const struct convolution *convolution, const struct phase *phase);

#endif
