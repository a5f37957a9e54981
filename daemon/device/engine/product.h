/* Products of dense matrices by micro-kernels: data R x K, weights K x M, a bias of M or none, out R x M, each
 * row-major. Weights are packed and the pack is kept; rows of data are laid out in each run, a panel at a time. */
#ifndef DEVICE_PRODUCT_H
#define DEVICE_PRODUCT_H

#include "daemon/device/kernel_support/windows/weighted.h"

/* For a call whose check has called weighted_check for `terms`, which is K. */
struct product {
	const struct weighted_roles *roles;
	int64_t rows, terms, columns; /* R, K and M */
};

/* As struct kernel's functions. */
size_t product_scratch_bytes(const struct kernel_call *call, const struct product *product);
/* Of the role `weights`. */
size_t product_pack_bytes(const struct kernel_call *call, const struct product *product);
bool product_pack(const struct kernel_call *call, const struct product *product, void *pack);
/* About how many element steps a run takes. */
int64_t product_steps(const struct kernel_call *call, const struct product *product);
/* Reads relu=. */
void product_run(struct kernel_call *call, const struct product *product);

#endif
