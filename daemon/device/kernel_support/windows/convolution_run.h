/* A phase of a convolution, run by the engine or by patches.h. */
#ifndef DEVICE_CONVOLUTION_RUN_H
#define DEVICE_CONVOLUTION_RUN_H

#include "daemon/device/kernel_support/windows/convolution.h"

/* What pack() makes of the weights of a phase, by_engine being set; false where the rest is no longer wanted. */
size_t convolution_pack_bytes(const struct convolution *convolution, const struct phase *phase);
bool convolution_pack(const struct convolution *convolution, const struct phase *phase, void *pack);
/* What run() needs for a phase. */
size_t convolution_scratch_bytes(const struct convolution *convolution, const struct phase *phase);
/* About how many element steps run() takes for a phase. */
int64_t convolution_steps(const struct convolution *convolution, const struct phase *phase);
/* Writes the outputs of a phase and adds to the call's counts. False where the rest is no longer wanted. */
bool convolution_run(const struct convolution *convolution, const struct phase *phase);

#endif
