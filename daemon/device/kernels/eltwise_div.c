/* out = in1 / in2 in any formats, either of which may be a scalar: y = x1 * 2^(f_out - f1 + f2) / x2, rounded
 * once, then saturated once. x / 0 is the container's end of x's sign, 0 / 0 is 0. */
#include "daemon/device/fixed/round.h"
#include "daemon/device/kernel_support/eltwise.h"
#include "daemon/device/kernel_support/operands.h"

/* Operands are at most 2^15. From a shift of 2^32 on every quotient but 0 is past its container; from one of 2^-17
 * on each is below one half. So no shift beyond these gives another result, and no product leaves 2^51. */
enum { LEFT_MAX = 32, RIGHT_MAX = 17 };
/* Bits of the quotient beyond the result's: the first that falls off, and whether anything is below it. */
enum { GUARD_BITS = 2 };

struct quotient {
	int64_t dividend_unit, divisor_unit;
	struct requantize requantize; /* of results in the container */
	enum npumem_rounding rounding;
};

static void quotient_init(struct quotient *q, const struct kernel_call *call)
{
	const struct kernel_operand *out = operands_get(call, ELTWISE_OUT);
	int64_t shift = out->frac_bits - operands_get(call, ELTWISE_IN1)->frac_bits +
			operands_get(call, ELTWISE_IN2)->frac_bits;
	int64_t left = shift < 0 ? 0 : shift < LEFT_MAX ? shift : LEFT_MAX;
	int64_t right = shift > 0 ? 0 : -shift < RIGHT_MAX ? -shift : RIGHT_MAX;
	q->dividend_unit = (int64_t)1 << (left + GUARD_BITS);
	q->divisor_unit = (int64_t)1 << right;
	q->rounding = call->rounding;
	requantize_init(&q->requantize, out->dtype, 0, call->rounding);
}

static int32_t divide(const struct quotient *q, int32_t x1, int32_t x2, struct kernel_counts *counts)
{
	const struct requantize *r = &q->requantize;
	if (x2 == 0) {
		counts->divided_by_zero++;
		return (int32_t)(x1 < 0 ? r->low : x1 > 0 ? r->high : 0);
	}
	int64_t dividend = x1 * q->dividend_unit, divisor = x2 * q->divisor_unit;
	int64_t floor = dividend / divisor, rest = dividend % divisor;
	floor -= rest != 0 && (rest < 0) != (divisor < 0);
	return (int32_t)round_clamp(floor | (rest != 0), GUARD_BITS, q->rounding, r->low, r->high,
				    &counts->saturated);
}

static void run(struct kernel_call *call)
{
	struct quotient q;
	quotient_init(&q, call);
	struct eltwise e;
	for (eltwise_begin(&e, call); eltwise_next(&e);) {
		for (int64_t i = 0; i < e.n; i++)
			e.values[i] = divide(&q, e.in1[i], e.in2[i], &call->counts);
		eltwise_store(&e, &q.requantize);
	}
}

const struct kernel kernel_eltwise_div = {
	.number = NPUMEM_KERNEL_ELTWISE_DIV,
	.in_place = true,
	.check = eltwise_check,
	.run = run,
};
