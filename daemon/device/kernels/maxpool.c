/* Maximum over the valid points of each window. */
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/pool.h"

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, POOL_IN), *out = operands_get(call, POOL_OUT);
	struct row row = {.sign = 1};
	struct pool pool;
	requantize_init(&row.to, out->dtype, in->frac_bits - out->frac_bits, call->rounding);
	row_init(&row, call->isa, row_magnitude(in->dtype));
	call->counts = (struct kernel_counts){.saturated = 0};
	for (pool_begin(&pool, call, FOLD_LARGER); pool_next(&pool);) {
		row.in1 = pool_source(&pool);
		row.out = pool.out;
		if (pool.rows.to)
			row_requantize(&row, pool.n_values, &call->counts.saturated);
		else
			call->counts.saturated += requantize_row64(&row.to, pool.values, pool.n_values, pool.out);
	}
}

static int64_t steps(const struct kernel_call *call)
{
	return pool_steps(call, 0);
}

const struct kernel kernel_maxpool = {
	.number = NPUMEM_KERNEL_MAXPOOL,
	.by_feature = POOL_BY_FEATURE,
	.check = pool_check,
	.scratch_bytes = pool_scratch_bytes,
	.steps = steps,
	.run = run,
};
