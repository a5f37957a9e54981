/* in1 + in2 and in1 - in2 in any formats: both are brought to the format with more frac_bits, added exactly, and
 * rounded to out's once. */
#ifndef DEVICE_ELTWISE_SUM_H
#define DEVICE_ELTWISE_SUM_H

#include "daemon/device/operations/kernel.h"

/* The run of a kernel whose check is eltwise_check. `sign`, 1 or -1, is that of in2. */
void eltwise_sum_run(struct kernel_call *call, int sign);

#endif
