/* Elements of dense operands, widened. */
#ifndef DEVICE_ELEMENTS_H
#define DEVICE_ELEMENTS_H

#include "daemon/device/operations/kernel.h"

/* Elements first, first + 1, … (n of them) of an array of an integer or fixed point `dtype`. */
void elements_load64(int dtype, const void *data, int64_t first, int64_t n, int64_t *to);
/* The same for types of 8 and 16 bits. */
void elements_load32(int dtype, const void *data, int64_t first, int64_t n, int32_t *to);
/* Copies n elements of `bytes` each into an output, and tells them; `pending` as kernel_step_rarely. False where
 * the rest is no longer wanted. */
bool elements_copy(const struct kernel_call *call, void *to, const void *from, int64_t n, unsigned bytes,
		   int64_t *pending);

#endif
