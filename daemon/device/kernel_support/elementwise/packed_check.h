/* The checks of the packed kernels: what the vendor's model refuses or garbles is refused here, by name. */
#ifndef DEVICE_PACKED_CHECK_H
#define DEVICE_PACKED_CHECK_H

#include "daemon/device/operations/kernel.h"

/* Each returns 0 or INVALID. All of them want one shape, a constant that lies in its type, shifts of 0 to 31, and
 * no rounding but `up`. A constant's type is that of in1 where value_dtype= does not say it, a shift's int16. */

/* Sums and differences: sources of one width. */
int packed_check_sum(const struct kernel_call *call, struct npumem_error *error);
/* Products: sources of 8 bits. */
int packed_check_mul(const struct kernel_call *call, struct npumem_error *error);
/* Sources of 8 bits, acc and out of 16. */
int packed_check_mac(const struct kernel_call *call, struct npumem_error *error);
/* Minimum and maximum: sources of one type, out of their width. */
int packed_check_order(const struct kernel_call *call, struct npumem_error *error);
/* Shifts by int16 or uint16; in1 and out are int16. */
int packed_check_arithmetic(const struct kernel_call *call, struct npumem_error *error);
/* Likewise; in1 and out are int16, or both are uint16. */
int packed_check_logical(const struct kernel_call *call, struct npumem_error *error);

#endif
