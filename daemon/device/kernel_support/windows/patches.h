/* Convolution by dot products: windows are gathered as rows, and each meets the weights of several output channels
 * in one pass. For any shape; worth the gathering where a group has more than a few output channels. */
#ifndef DEVICE_PATCHES_H
#define DEVICE_PATCHES_H

#include "daemon/device/kernel_support/windows/convolution.h"

/* As convolution_scratch_bytes, convolution_steps and convolution_run. For any phase. */
size_t patches_scratch_bytes(const struct convolution *convolution, const struct phase *phase);
int64_t patches_steps(const struct convolution *convolution, const struct phase *phase);
bool patches_run(const struct convolution *convolution, const struct phase *phase);

#endif
