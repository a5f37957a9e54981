/* Sums along axes, in an accumulator of 32 bits for fx8 and 40 for fx16 that wraps past its range. */
#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/reduce.h"

/* All-minimum elements reach the lowest value of either accumulator, and no further: 2^24 * 2^7 and 2^24 * 2^15.
 */
static const int64_t safe_terms = INT64_C(1) << 24;

static void wrap(struct kernel_call *call, int64_t *accumulators, int64_t n, int64_t terms)
{
	unsigned bits = operands_get(call, REDUCE_IN)->dtype == NPUMEM_FX8 ? 32 : 40;
	if (terms <= safe_terms)
		return;
	for (int64_t i = 0; i < n; i++)
		accumulators[i] = accumulator_total(accumulators[i], 0, 0, bits, &call->counts.wrapped);
}

static const struct reduce_rule sum = {.fold = FOLD_SUM, .close = wrap};

static void run(struct kernel_call *call)
{
	reduce_run(call, &sum);
}

const struct kernel kernel_reduce_sum = {
	.number = NPUMEM_KERNEL_REDUCE_SUM,
	.by_feature = 1 << REDUCE_IN,
	.check = reduce_check,
	.steps = reduce_steps,
	.run = run,
};
