/* Pooling: windows of kernel=, stride= and padding= over each feature by itself.
 * Roles in [N,C,H,W] and out [N,C,Ho,Wo], of one type (fx8 or fx16); their formats are the kernel's business. */
#ifndef DEVICE_KERNEL_SUPPORT_POOL_H
#define DEVICE_KERNEL_SUPPORT_POOL_H

#include "daemon/device/kernel.h"
#include "daemon/device/kernel_support/window.h"

enum { POOL_IN, POOL_OUT };

/* Types, parameters and shapes: 0 or INVALID. Every window then meets the input. */
int pool_check(const struct kernel_call *call, struct npumem_error *error);
/* The windows of a call that passed. */
void pool_window(const struct kernel_call *call, struct window *window);

#endif
