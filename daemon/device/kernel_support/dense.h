/* Kernels that are a product of dense matrices, data R x K times weights K x M: all but their check. R is the
 * data's N, K is all else that it has. */
#ifndef DEVICE_DENSE_H
#define DEVICE_DENSE_H

#include "daemon/device/kernel_support/windows/weighted.h"

/* The places of the roles in the kernel's row. */
enum { DENSE_DATA, DENSE_WEIGHTS, DENSE_BIAS, DENSE_OUT };
extern const struct weighted_roles dense_roles;

/* As struct kernel's functions; DENSE_WEIGHTS is packed. */
size_t dense_scratch_bytes(const struct kernel_call *call);
size_t dense_pack_bytes(const struct kernel_call *call);
bool dense_pack(const struct kernel_call *call, void *pack);
int64_t dense_steps(const struct kernel_call *call);
void dense_run(struct kernel_call *call);

#endif
