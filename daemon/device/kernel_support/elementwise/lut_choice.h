/* What kernels with tables share: lut=, and the format of results that lie in [-1, 1). */
#ifndef DEVICE_LUT_CHOICE_H
#define DEVICE_LUT_CHOICE_H

#include "daemon/device/fixed/rows/lut.h"
#include "daemon/device/operations/kernel.h"

/* The library of lut=, or `otherwise` where it was not given. */
enum lut_library lut_choice(const struct kernel_call *call, enum lut_library otherwise);

/* frac_bits of results that lie in [-1, 1): 7 for fx8, 15 for fx16. */
int64_t lut_choice_frac_bits(int dtype);

/* The role has those: 0 or INVALID. */
int lut_choice_check(const struct kernel_call *call, unsigned role, struct npumem_error *error);

#endif
