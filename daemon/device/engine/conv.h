/* Convolution by micro-kernels: features are packed, blocks of output channels by strips of pixels are summed in
 * registers, and each block is rounded and stored as features, which lie planar again.
 *
 * Weights are packed first, then each group's data; from there on every tile (a strip of a group) is summed and
 * stored by itself, with a workspace of its own. */
#ifndef DEVICE_CONV_H
#define DEVICE_CONV_H

#include "daemon/device/engine/conv_plan.h"

/* The plan points to both. False where another way is to be taken: windows that dwarf the input, or no taps at
 * all. */
bool conv_plan_init(struct conv_plan *plan, const struct convolution *convolution, const struct phase *phase);

/* The pack of a phase's weights, of a multiple of 64 bytes; false where it is no longer wanted. */
size_t conv_pack_bytes(struct conv_plan *plan);
bool conv_pack_weights(struct conv_plan *plan, void *pack);
/* About how many element steps a run takes. */
int64_t conv_steps(const struct conv_plan *plan);
/* As convolution_scratch_bytes and convolution_run; weights are those of the convolution's pack. */
size_t conv_scratch_bytes(struct conv_plan *plan);
bool conv_run(struct conv_plan *plan);

#endif
