/* GRU cell, gates z (update), r (reset), n (new): n = tanh(W x + U (r*h)), h = n*(1 - z) + h*z. 1.0 is the largest
 * fx16, and each product and sum rounds: r*h and h*z to h's format, n*(1 - z) and the end to out's. */
#include "daemon/device/fixed/align.h"
#include "daemon/device/kernel_support/cell.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, BIAS, OUT };
enum { GATE_Z, GATE_R, GATE_N, N_GATES };

/* A sum past the ends of the tables is flat: 4 integer bits are enough. */
enum { GATE_FRAC_BITS = 11 };

static const struct cell_form form = {N_GATES, IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, BIAS, OUT, false};

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = cell_check(call, &form, error);
	return status ? status : cell_check_fx16(call, IN, error);
}

/* The sums, then r*h. */
static size_t scratch_bytes(const struct kernel_call *call)
{
	return cell_scratch_bytes(call, &form) + (size_t)operands_get(call, PREV_OUT)->shape.c * sizeof(int16_t);
}

struct gru {
	struct cell cell;
	struct lut_reader sigmoid, tanh;
	int16_t *reset; /* r*h */
};

static void gru_init(struct gru *g, struct kernel_call *call)
{
	int64_t exact = operands_get(call, IN)->frac_bits + operands_get(call, WEIGHTS_IN)->frac_bits;
	int64_t gate = exact < GATE_FRAC_BITS ? exact : GATE_FRAC_BITS;
	enum lut_library library = lut_choice(call, LUT_MLI2_0);
	lut_reader_init(&g->sigmoid, lut_find(LUT_SIGMOID, library), gate, call->rounding);
	lut_reader_init(&g->tanh, lut_find(LUT_TANH, library), gate, call->rounding);
	g->reset = (int16_t *)((uint8_t *)call->scratch + cell_scratch_bytes(call, &form));
	cell_begin(&g->cell, call, &form, gate);
}

static void reset(const struct gru *g)
{
	const struct cell *cell = &g->cell;
	int64_t ignored = 0;
	for (int64_t m = 0; m < cell->n_outputs; m++) {
		int64_t h = container_get(cell->state, cell->bytes, m);
		int64_t r = lut_read(&g->sigmoid, cell_sum(cell, GATE_R, m));
		g->reset[m] = (int16_t)cell_product(cell, r, h, cell->unit_frac_bits, &ignored);
	}
}

/* h of this step. An element counts as saturated once, whether n*(1 - z) or the sum was clamped. */
static void update(const struct gru *g, int64_t *saturated)
{
	const struct cell *cell = &g->cell;
	const struct kernel_operand *out = operands_get(cell->call, OUT);
	struct align align;
	align_init(&align, out->frac_bits, cell->state_frac_bits);
	struct requantize result;
	requantize_init(&result, out->dtype, align.frac_bits - out->frac_bits, cell->call->rounding);
	for (int64_t m = 0; m < cell->n_outputs; m++) {
		int64_t clamped = 0, unit = cell->unit_frac_bits;
		int64_t z = lut_read(&g->sigmoid, cell_sum(cell, GATE_Z, m));
		int64_t n = lut_read(&g->tanh, cell_sum(cell, GATE_N, m));
		int64_t h = container_get(cell->state, cell->bytes, m);
		int64_t keep = cell_product(cell, h, z, unit, &clamped);
		int64_t fresh = cell_product(cell, n, cell->high - z, 2 * unit - out->frac_bits, &clamped);
		h = align_sum(&align, fresh, keep, &result, &clamped);
		container_put(cell->out, cell->bytes, m, h);
		*saturated += clamped > 0;
	}
}

static void run(struct kernel_call *call)
{
	struct gru g;
	int64_t saturated = 0;
	gru_init(&g, call);
	while (cell_next(&g.cell)) {
		cell_sums(&g.cell, GATE_Z, 2, g.cell.state);
		if (g.cell.stopped)
			return;
		reset(&g);
		cell_sums(&g.cell, GATE_N, 1, g.reset);
		if (g.cell.stopped)
			return;
		update(&g, &saturated);
	}
	call->counts.saturated = saturated;
}

const struct kernel kernel_gru_cell = {
	.number = NPUMEM_KERNEL_GRU_CELL,
	.in_place = true,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.run = run,
};
