/* Reductions along axes=, all four where it is not given: roles in and out, of one type (fx8 or fx16); out has
 * extent 1 along the axes and that of in along the others. */
#ifndef DEVICE_REDUCE_H
#define DEVICE_REDUCE_H

#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/operations/kernel.h"

enum { REDUCE_IN, REDUCE_OUT };

struct reduce_rule {
	enum fold fold;
	/* NULL, or what becomes of n results of `terms` elements each before they are rounded. */
	void (*close)(struct kernel_call *call, int64_t *results, int64_t n, int64_t terms);
};

int reduce_check(const struct kernel_call *call, struct npumem_error *error);
int64_t reduce_steps(const struct kernel_call *call);
/* Rounds and saturates each result once, to out's format. */
void reduce_run(struct kernel_call *call, const struct reduce_rule *rule);

#endif
