/* Formats that are not far apart meet in 32 bits, a row at a time; all others one by one. */
#include "daemon/device/kernel_support/eltwise_sum.h"

#include "daemon/device/fixed/align.h"
#include "daemon/device/kernel_support/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

/* 2^15 * 2^14 + 2^15 fits 31 bits. */
enum { ELTWISE_SUM_NARROW_LEFT = 14 };

static void narrow_sums(struct eltwise *e, const struct align *align, int sign)
{
	int32_t unit = (int32_t)1 << align->left;
	int32_t unit1 = align->first_is_coarse ? unit : 1, unit2 = sign * (align->first_is_coarse ? 1 : unit);
	for (int64_t i = 0; i < e->n; i++)
		e->values[i] = e->in1[i] * unit1 + e->in2[i] * unit2;
}

void eltwise_sum_run(struct kernel_call *call, int sign)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	struct align align;
	align_init(&align, operands_get(call, ELTWISE_IN1)->frac_bits, operands_get(call, ELTWISE_IN2)->frac_bits);
	struct requantize requantize, store; /* store: of values that are already in the container */
	requantize_init(&requantize, out->dtype, align.frac_bits - out->frac_bits, call->rounding);
	requantize_init(&store, out->dtype, 0, call->rounding);
	bool narrow = align.beyond == 0 && align.left <= ELTWISE_SUM_NARROW_LEFT;
	struct eltwise e;
	for (eltwise_begin(&e, call); eltwise_next(&e);) {
		if (narrow) {
			narrow_sums(&e, &align, sign);
			eltwise_store(&e, &requantize);
			continue;
		}
		for (int64_t i = 0; i < e.n; i++)
			e.values[i] = (int32_t)align_sum(&align, e.in1[i], sign * e.in2[i], &requantize,
							 &call->counts.saturated);
		eltwise_store(&e, &store);
	}
}
