/* Grouped 2D convolution: conv2d has one group, depthwise as many as input channels.
 * Roles in, weights, bias, out; in [N,I,H,W], weights [I/groups,O,kh,kw], bias [1,O,1,1], out [N,O,Ho,Wo]; output
 * channel o belongs to group o / (O/groups) and sees the inputs of that group. */
#ifndef DEVICE_CONVOLVE_H
#define DEVICE_CONVOLVE_H

#include "daemon/device/kernel_support/windows/convolution.h"

/* `groups` >= 1. */
int convolve_check(const struct kernel_call *call, int64_t groups, struct npumem_error *error);
void convolve_plan(struct kernel_call *call, int64_t groups);
/* The members of struct kernel with these names. The pack is of the weights. */
size_t convolve_scratch_bytes(const struct kernel_call *call);
size_t convolve_pack_bytes(const struct kernel_call *call);
bool convolve_pack(const struct kernel_call *call, void *pack);
int64_t convolve_steps(const struct kernel_call *call);
void convolve_run(struct kernel_call *call);

#endif
