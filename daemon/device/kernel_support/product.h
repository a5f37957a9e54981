/* Products of dense matrices: data R x K, weights K x M, a bias of M or none, out R x M, each row-major. */
#ifndef DEVICE_PRODUCT_H
#define DEVICE_PRODUCT_H

#include "daemon/device/kernel_support/weighted.h"

/* `columns` is M. */
size_t product_scratch_bytes(int64_t columns);
/* The run of a kernel whose check has called weighted_check for `terms`, which is K. Reads relu= and sets the
 * call's counts. */
void product_run(struct kernel_call *call, const struct weighted_roles *roles, int64_t rows, int64_t terms,
		 int64_t columns);

#endif
