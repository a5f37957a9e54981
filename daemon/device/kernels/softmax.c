/* softmax: e^(x - max) by table, divided by their sum through a reciprocal of 15 bits. fx16 takes the difference
 * as it is; fx8 follows the rule of mli 1.1, whose register has the container's width: where the smallest
 * difference does not fit, inputs and maximum are halved first. */
#include "daemon/device/kernel_support/container.h"
#include "daemon/device/kernel_support/lut_choice.h"
#include "daemon/device/kernel_support/lut_groups.h"
#include "daemon/device/kernel_support/operands.h"

enum { MANTISSA_BITS = 15, PASSES = 3 };

/* (sum's mantissa)^-1 * e^(x - max), to be shifted by `shift` to the container. */
struct scale {
	int64_t reciprocal, shift;
};

static struct scale scale_of(int64_t sum, unsigned bytes, enum npumem_rounding rounding)
{
	int64_t bits = 0, ignored = 0;
	while (sum >> bits != 0)
		bits++;
	int64_t mantissa = round_clamp(sum, bits - MANTISSA_BITS, rounding, 0, INT16_MAX, &ignored);
	int64_t reciprocal = (INT64_C(1) << 29) / mantissa;
	/* The library counts its shifts from the redundant sign bits of 32: 31 - bits. */
	return (struct scale){reciprocal < INT16_MAX ? reciprocal : INT16_MAX, (bytes == 1 ? 7 : -1) + bits};
}

/* Leaves e^(x - max) in `out`, and returns their sum, which is at least that of the maximum itself. */
static int64_t exponentials(const struct kernel_call *call, struct lut_groups *g, int64_t frac_bits)
{
	int64_t least = INT16_MAX, most = INT16_MIN, sum = 0, ignored = 0;
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end);)
		for (; i < end; i++) {
			int64_t x = container_get(g->in, g->bytes, i * g->step);
			least = x < least ? x : least;
			most = x > most ? x : most;
		}
	unsigned halved = g->bytes == 1 && least - most < INT8_MIN;
	struct lut_reader reader;
	lut_reader_init(&reader, lut_find(LUT_EXP, lut_choice(call, LUT_MLI2_0)), frac_bits - halved,
			call->rounding);
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end);)
		for (; i < end; i++) {
			int64_t x = (container_get(g->in, g->bytes, i * g->step) >> halved) - (most >> halved);
			int64_t e = lut_result(&reader, x, g->bytes, &ignored);
			container_put(g->out, g->bytes, i * g->step, e);
			sum += e;
		}
	return sum;
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, LUT_GROUPS_IN);
	int64_t low, high, saturated = 0;
	npumem_dtype_range(in->dtype, &low, &high);
	struct lut_groups g;
	call->counts = (struct kernel_counts){.saturated = 0};
	for (lut_groups_begin(&g, call, PASSES); lut_groups_next(&g, call);) {
		int64_t sum = exponentials(call, &g, in->frac_bits);
		/* Of a part of the group the sum may be 0. */
		if (g.stopped)
			return;
		struct scale scale = scale_of(sum, g.bytes, call->rounding);
		for (int64_t i = 0, end = 0; lut_groups_piece(&g, call, &end);)
			for (; i < end; i++) {
				int64_t y = scale.reciprocal * container_get(g.out, g.bytes, i * g.step);
				y = round_clamp(y, scale.shift, call->rounding, low, high, &saturated);
				container_put(g.out, g.bytes, i * g.step, y);
			}
	}
	call->counts.saturated = saturated;
}

const struct kernel kernel_softmax = {
	.number = NPUMEM_KERNEL_SOFTMAX,
	.in_place = true,
	.check = lut_groups_check,
	.run = run,
};
