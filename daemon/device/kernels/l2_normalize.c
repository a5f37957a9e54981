/* l2_normalize: each element of a group times 1/sqrt of the sum of their squares, which is brought to 15 bits by
 * an even shift and looked up as Q.8. The input's format does not matter; no epsilon is added. */
#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/rows/dot.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/elementwise/lut_groups.h"
#include "daemon/device/kernel_support/operands.h"

enum { MANTISSA_BITS = 15, MANTISSA_FRAC_BITS = 8, OUT_FRAC_BITS = 15, PASSES = 2 };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = lut_groups_check(call, error);
	if (status)
		return status;
	if (operands_get(call, LUT_GROUPS_IN)->dtype != NPUMEM_FX16) {
		npumem_error_set(error, NPUMEM_INVALID, "%s: in is fx8, but must be fx16: no other has a rule",
				 call->row->name);
		npumem_error_text(error, "role", call->roles[LUT_GROUPS_IN].name);
		return NPUMEM_INVALID;
	}
	struct lut_groups g;
	lut_groups_begin(&g, call, PASSES);
	if (g.size > ACCUMULATOR_PRODUCTS_MAX)
		return npumem_error_set(error, NPUMEM_INVALID,
					"%s: a group would sum %lld squares, more than %lld", call->row->name,
					(long long)g.size, (long long)ACCUMULATOR_PRODUCTS_MAX);
	return 0;
}

static int64_t sum_of_squares(const struct kernel_call *call, struct lut_groups *g)
{
	const int16_t *in = (const int16_t *)(const void *)g->in;
	int64_t sum = 0;
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end); i = end)
		sum += dot(call->isa, in + i, in + i, end - i);
	return sum;
}

/* The even shift that leaves 14 or 15 bits. */
static int64_t shift_of(int64_t sum)
{
	int64_t bits = sum > 0 ? 64 - __builtin_clzll((unsigned long long)sum) : 0;
	int64_t shift = bits - MANTISSA_BITS;
	return shift % 2 == 0 ? shift : shift + 1;
}

static void run(struct kernel_call *call)
{
	const struct lut *lut = lut_find(LUT_INVSQRT, LUT_MLI2_0);
	struct lut_reader reader;
	lut_reader_init(&reader, lut, MANTISSA_FRAC_BITS, call->rounding);
	struct lut_groups g;
	struct row row = {.in1 = row_source(NPUMEM_FX16)};
	int64_t ignored = 0;
	requantize_init(&row.to, NPUMEM_FX16, 0, call->rounding);
	call->counts = (struct kernel_counts){.macs = operands_elements(operands_get(call, LUT_GROUPS_IN))};
	for (lut_groups_begin(&g, call, PASSES); lut_groups_next(&g, call);) {
		int64_t sum = sum_of_squares(call, &g), shift = shift_of(sum);
		int64_t mantissa = round_clamp(sum, shift, call->rounding, 0, INT16_MAX, &ignored);
		int64_t factor = lut_read(&reader, mantissa);
		int64_t back = lut->out_frac_bits + (shift + MANTISSA_FRAC_BITS) / 2 - OUT_FRAC_BITS;
		row.in2.value = (int32_t)factor;
		row.to.shift = back;
		row_init_product(&row, call->isa, row_magnitude(NPUMEM_FX16) << MANTISSA_BITS);
		for (int64_t i = 0, end = 0; lut_groups_piece(&g, call, &end); i = end) {
			row.in1.data = g.in + i * g.bytes;
			row.out = g.out + i * g.bytes;
			row_product(&row, end - i, &call->counts.saturated);
		}
	}
}

static int64_t steps(const struct kernel_call *call)
{
	return lut_groups_steps(call, PASSES);
}

const struct kernel kernel_l2_normalize = {
	.number = NPUMEM_KERNEL_L2_NORMALIZE,
	.in_place = true,
	.check = check,
	.scratch_bytes = lut_groups_scratch_bytes,
	.steps = steps,
	.run = run,
};
