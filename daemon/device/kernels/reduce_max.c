/* Maxima along axes, rounded to out's format. */
#include "daemon/device/kernel_support/reduce.h"

static const struct reduce_rule maximum = {.fold = FOLD_LARGER};

static void run(struct kernel_call *call)
{
	reduce_run(call, &maximum);
}

const struct kernel kernel_reduce_max = {
	.number = NPUMEM_KERNEL_REDUCE_MAX,
	.by_feature = 1 << REDUCE_IN,
	.check = reduce_check,
	.steps = reduce_steps,
	.run = run,
};
