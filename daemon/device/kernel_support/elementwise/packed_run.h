/* The runs of the packed kernels, each for the form with two tensors and the one with a constant. */
#ifndef DEVICE_PACKED_RUN_H
#define DEVICE_PACKED_RUN_H

#include "daemon/device/operations/kernel.h"

void packed_run_add(struct kernel_call *call);
/* in1 - in2 */
void packed_run_sub(struct kernel_call *call);
/* in2 - in1 */
void packed_run_sub_from(struct kernel_call *call);
void packed_run_mul(struct kernel_call *call);
/* acc * 2^lshift + in1 * in2, in 32 bits that wrap. */
void packed_run_mac(struct kernel_call *call);
void packed_run_min(struct kernel_call *call);
void packed_run_max(struct kernel_call *call);
/* in1 * 2^amount, cut to 16 bits; a negative amount shifts to the right, where bits are lost without rounding. The
 * amount is the low 8 bits of in2, signed. */
void packed_run_arithmetic_shift(struct kernel_call *call);
/* Likewise of in1 without its sign: zeros come in from the left. */
void packed_run_logical_shift(struct kernel_call *call);

#endif
