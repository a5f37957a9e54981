/* softmax: e^(x - max) by table, divided by their sum through a reciprocal of 15 bits. fx16 takes the difference
 * as it is; fx8 follows the rule of mli 1.1, whose register has the container's width: where the smallest
 * difference does not fit, inputs and maximum are halved first. */
#include "daemon/device/fixed/rows/folds.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/elementwise/lut_groups.h"
#include "daemon/device/kernel_support/operands.h"

enum {
	MANTISSA_BITS = 15,
	PASSES = 3,
	SHORT = 8, /* elements of a group that take less time one by one than rows take to begin */
};

/* (sum's mantissa)^-1 * e^(x - max), to be shifted by `shift` to the container. */
struct scale {
	int64_t reciprocal, shift;
};

static struct scale scale_of(int64_t sum, unsigned bytes, enum npumem_rounding rounding)
{
	int64_t bits = 64 - __builtin_clzll((unsigned long long)sum), ignored = 0; /* sum > 0 */
	int64_t mantissa = round_clamp(sum, bits - MANTISSA_BITS, rounding, 0, INT16_MAX, &ignored);
	int64_t reciprocal = (INT64_C(1) << 29) / mantissa;
	/* The library counts its shifts from the redundant sign bits of 32: 31 - bits. */
	return (struct scale){reciprocal < INT16_MAX ? reciprocal : INT16_MAX, (bytes == 1 ? 7 : -1) + bits};
}

/* The tables for inputs as they are, and for halved ones. */
struct readers {
	struct lut_reader of[2];
};

/* Elements from i on. */
static struct fold_rows elements(const struct lut_groups *g, const uint8_t *data, int64_t i)
{
	return (struct fold_rows){.data = data + i * g->bytes, .bytes = g->bytes, .n_rows = 1};
}

/* Leaves e^(x - max) in `out`, and returns their sum, which is at least that of the maximum itself. */
static int64_t exponentials(const struct kernel_call *call, struct lut_groups *g, const struct readers *readers)
{
	int64_t least = INT16_MAX, most = INT16_MIN, sum = 0, ignored = 0;
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end); i = end) {
		const struct fold_rows in = elements(g, g->in, i);
		int64_t larger = fold_across(FOLD_LARGER, call->isa, &in, end - i);
		int64_t smaller = g->bytes == 1 ? fold_across(FOLD_SMALLER, call->isa, &in, end - i) : most;
		most = larger > most ? larger : most;
		least = smaller < least ? smaller : least;
	}
	unsigned halved = g->bytes == 1 && least - most < INT8_MIN;
	struct lut_row row = {.reader = &readers->of[halved],
			      .bytes = g->bytes,
			      .halved = halved,
			      .minus = (int32_t)(most >> halved)};
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end); i = end) {
		const struct fold_rows out = elements(g, g->out, i);
		row.in = g->in + i * g->bytes;
		row.out = g->out + i * g->bytes;
		lut_row(call->isa, &row, end - i, &ignored);
		sum += fold_across(FOLD_SUM, call->isa, &out, end - i);
	}
	return sum;
}

static void scale_group(struct kernel_call *call, struct lut_groups *g, const struct scale *scale, struct row *row)
{
	row->in2.value = (int32_t)scale->reciprocal;
	row->to.shift = scale->shift;
	row_init_product(row, call->isa, (int64_t)1 << (8 * g->bytes - 1 + MANTISSA_BITS));
	for (int64_t i = 0, end = 0; lut_groups_piece(g, call, &end); i = end) {
		row->in1.data = row->out = g->out + i * g->bytes;
		row_product(row, end - i, &call->counts.saturated);
	}
}

static int64_t get(const uint8_t *data, unsigned bytes, int64_t i)
{
	return bytes == 1 ? ((const int8_t *)data)[i] : ((const int16_t *)data)[i];
}

/* All of a group of at most SHORT elements: what rows do, by its definition. */
static void run_short(struct kernel_call *call, const struct lut_groups *g, const struct readers *readers,
		      const struct requantize *to)
{
	int64_t x[SHORT], most = INT16_MIN, least = INT16_MAX, sum = 0, ignored = 0;
	for (int64_t i = 0; i < g->size; i++) {
		x[i] = get(g->in, g->bytes, i);
		most = x[i] > most ? x[i] : most;
		least = x[i] < least ? x[i] : least;
	}
	unsigned halved = g->bytes == 1 && least - most < INT8_MIN;
	for (int64_t i = 0; i < g->size; i++) {
		x[i] = lut_result(&readers->of[halved], (x[i] >> halved) - (most >> halved), g->bytes, &ignored);
		sum += x[i];
	}
	struct scale scale = scale_of(sum, g->bytes, call->rounding);
	for (int64_t i = 0; i < g->size; i++) {
		int64_t y = round_clamp(x[i] * scale.reciprocal, scale.shift, call->rounding, to->low, to->high,
					&call->counts.saturated);
		if (g->bytes == 1)
			((int8_t *)g->out)[i] = (int8_t)y;
		else
			((int16_t *)g->out)[i] = (int16_t)y;
	}
}

static void run(struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, LUT_GROUPS_IN);
	const struct lut *exp = lut_find(LUT_EXP, lut_choice(call, LUT_MLI2_0));
	struct row row = {.in1 = row_source(in->dtype)};
	struct readers readers;
	struct lut_groups g;
	for (int64_t halved = 0; halved <= (in->dtype == NPUMEM_FX8); halved++)
		lut_reader_init(&readers.of[halved], exp, in->frac_bits - halved, call->rounding);
	requantize_init(&row.to, in->dtype, 0, call->rounding);
	call->counts = (struct kernel_counts){.saturated = 0};
	for (lut_groups_begin(&g, call, PASSES); lut_groups_next(&g, call);) {
		if (g.size <= SHORT) {
			run_short(call, &g, &readers, &row.to);
			continue;
		}
		int64_t sum = exponentials(call, &g, &readers);
		/* Of a part of the group the sum may be 0. */
		if (g.stopped)
			return;
		struct scale scale = scale_of(sum, g.bytes, call->rounding);
		scale_group(call, &g, &scale, &row);
	}
}

static int64_t steps(const struct kernel_call *call)
{
	return lut_groups_steps(call, PASSES);
}

const struct kernel kernel_softmax = {
	.number = NPUMEM_KERNEL_SOFTMAX,
	.in_place = true,
	.check = lut_groups_check,
	.scratch_bytes = lut_groups_scratch_bytes,
	.steps = steps,
	.run = run,
};
