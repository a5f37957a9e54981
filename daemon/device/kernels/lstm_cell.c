/* LSTM cell, gates i, g, f, o: c = f*c + i*g, h = act(c)*o. Each arrow of rules=mli2_0 rounds: c*f to cell's
 * format, i*g to the tables', their sum to cell's. Of rules=mli1_1 i*g is rounded to cell's format and f*c added
 * to it before the one rounding that ends both. */
#include <string.h>

#include "daemon/device/fixed/align.h"
#include "daemon/device/kernel_support/cell.h"
#include "daemon/device/fixed/container.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, WEIGHTS, BIAS, CELL_IN, OUT, CELL_OUT };
enum { GATE_I, GATE_G, GATE_F, GATE_O, N_GATES };
enum { RULES_MLI2_0 = 1, RULES_MLI1_1 };

/* A sum past the ends of the tables is flat: so many integer bits are enough. */
enum { GATE_FRAC_BITS_2_0 = 10, GATE_INTEGER_BITS_1_1 = 3 };

/* Further than any f*c of 31 bits can bring back into the container. */
#define FAR (INT64_C(1) << 50)

static const struct cell_form forms[] = {
	[RULES_MLI2_0] = {N_GATES, IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, BIAS, OUT, false, false},
	[RULES_MLI1_1] = {N_GATES, IN, PREV_OUT, WEIGHTS, WEIGHTS, BIAS, OUT, true, false},
};

static int64_t rules_of(const struct kernel_call *call)
{
	return kernel_param(call, NPUMEM_PARAM_RULES, 0, RULES_MLI2_0);
}

/* What the two rules take. */
static int check_rules(const struct kernel_call *call, struct npumem_error *error)
{
	bool old = rules_of(call) == RULES_MLI1_1;
	bool joint = operands_get(call, WEIGHTS), in = operands_get(call, WEIGHTS_IN),
	     out = operands_get(call, WEIGHTS_OUT);
	if (joint != old || in == old || out == old)
		return npumem_error_set(error, NPUMEM_INVALID, "%s: %s", call->row->name,
					old ? "rules=mli1_1 takes weights, not weights_in and weights_out"
					    : "rules=mli2_0 takes weights_in and weights_out, not weights");
	if (!old)
		return cell_check_absent(call, NPUMEM_PARAM_MODE, "rules=mli2_0 takes direction and results",
					 error);
	int status = cell_check_absent(call, NPUMEM_PARAM_DIRECTION, "rules=mli1_1 takes mode", error);
	return status ? status : cell_check_absent(call, NPUMEM_PARAM_RESULTS, "rules=mli1_1 takes mode", error);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	int status = check_rules(call, error);
	if (!status)
		status = cell_check(call, &forms[rules_of(call)], error);
	if (!status && rules_of(call) == RULES_MLI2_0)
		status = cell_check_fx16(call, IN, error);
	if (!status)
		status = operands_check_same_dtype(call, CELL_IN, IN, error);
	if (!status)
		status = operands_check_shape(call, CELL_IN, &operands_get(call, PREV_OUT)->shape, "prev_out has",
					      error);
	if (!status)
		status = operands_check_same_dtype(call, CELL_OUT, CELL_IN, error);
	if (!status)
		status = operands_check_same_frac_bits(call, CELL_OUT, CELL_IN, error);
	return status ? status
		      : operands_check_shape(call, CELL_OUT, &operands_get(call, CELL_IN)->shape, "cell_in has",
					     error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	return cell_scratch_bytes(call, &forms[rules_of(call)]);
}

static size_t pack_bytes(const struct kernel_call *call)
{
	return cell_pack_bytes(call, &forms[rules_of(call)]);
}

static bool pack(const struct kernel_call *call, void *to)
{
	return cell_pack(call, &forms[rules_of(call)], to);
}

struct lstm {
	struct cell cell;
	int64_t rules;
	enum cell_act act;
	struct lut_reader sigmoid, tanh, output; /* output: of the cell, where act says one */
	int64_t cell_frac_bits;
	void *cells;		    /* cell_out: c of the step before, then of this one */
	struct row product, sum, h; /* by the tables' unit; f*c + i*g; the state */
};

static void rows_init(struct lstm *l, const struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN);
	int64_t unit = l->cell.unit_frac_bits;
	int64_t last = l->act == CELL_ACT_NONE ? l->cell_frac_bits : unit;
	cell_product_init(&l->cell, unit, &l->product);
	cell_product_init(&l->cell, last + unit - operands_get(call, OUT)->frac_bits, &l->h);
	l->sum = (struct row){.in1 = row_source(in->dtype), .in2 = row_source(in->dtype), .sign = 1};
	align_init(&l->sum.align, l->cell_frac_bits, unit);
	requantize_init(&l->sum.to, in->dtype, l->sum.align.frac_bits - l->cell_frac_bits, call->rounding);
	row_init_sum(&l->sum, call->isa, row_magnitude(in->dtype), row_magnitude(in->dtype));
}

static void lstm_init(struct lstm *l, struct kernel_call *call)
{
	const struct kernel_operand *in = operands_get(call, IN), *cell_in = operands_get(call, CELL_IN);
	bool old = rules_of(call) == RULES_MLI1_1;
	unsigned bytes = npumem_dtype_bytes(in->dtype);
	enum lut_library library = lut_choice(call, old ? LUT_MLI1_1 : LUT_MLI2_0);
	int64_t gate = lut_choice_frac_bits(in->dtype) - GATE_INTEGER_BITS_1_1;
	if (!old) {
		int64_t exact = in->frac_bits + operands_get(call, WEIGHTS_IN)->frac_bits;
		gate = exact < GATE_FRAC_BITS_2_0 ? exact : GATE_FRAC_BITS_2_0;
	}
	l->rules = rules_of(call);
	l->act = (enum cell_act)kernel_param(call, NPUMEM_PARAM_ACT, 0, CELL_ACT_NONE);
	l->cell_frac_bits = cell_in->frac_bits;
	lut_reader_init(&l->sigmoid, lut_find(LUT_SIGMOID, library), gate, call->rounding);
	lut_reader_init(&l->tanh, lut_find(LUT_TANH, library), gate, call->rounding);
	lut_reader_init(&l->output, lut_find(l->act == CELL_ACT_SIGM ? LUT_SIGMOID : LUT_TANH, library),
			l->cell_frac_bits, call->rounding);
	l->cells = operands_get(call, CELL_OUT)->data;
	memcpy(l->cells, cell_in->data, (size_t)cell_in->shape.c * bytes);
	cell_begin(&l->cell, call, &forms[l->rules], gate);
	rows_init(l, call);
}

/* Each makes c of this step, the sum of c*f and i*g, of gates that went through their tables. */

static void next_cells(struct lstm *l, int64_t *saturated)
{
	const struct cell *cell = &l->cell;
	uint8_t *i = cell_gate(cell, GATE_I), *f = cell_gate(cell, GATE_F);
	int64_t ignored = 0;
	cell_product(cell, &l->product, l->cells, f, f, &ignored);
	cell_product(cell, &l->product, cell_gate(cell, GATE_G), i, i, &ignored);
	l->sum.in1.data = f;
	l->sum.in2.data = i;
	l->sum.out = l->cells;
	row_sum(&l->sum, cell->n_outputs, saturated);
}

static void next_cells_1_1(const struct lstm *l, int64_t *saturated)
{
	const struct cell *cell = &l->cell;
	const struct requantize *to = &l->product.to;
	int64_t unit = cell->unit_frac_bits, ignored = 0;
	for (int64_t m = 0; m < cell->n_outputs; m++) {
		int64_t i = container_get(cell_gate(cell, GATE_I), cell->bytes, m);
		int64_t g = container_get(cell_gate(cell, GATE_G), cell->bytes, m);
		int64_t f = container_get(cell_gate(cell, GATE_F), cell->bytes, m);
		int64_t c = container_get(l->cells, cell->bytes, m);
		int64_t fresh = round_clamp(i * g, unit - l->cell_frac_bits, to->rounding, -FAR, FAR, &ignored);
		c = round_clamp(fresh + f * c, unit, to->rounding, to->low, to->high, saturated);
		container_put(l->cells, cell->bytes, m, c);
	}
}

/* The state: the cells, through their activation, by the output gate. */
static void store(struct lstm *l, int64_t *saturated)
{
	const struct cell *cell = &l->cell;
	const void *cells = l->cells;
	int64_t ignored = 0;
	if (l->act != CELL_ACT_NONE) {
		const struct lut_row row = {
			.reader = &l->output, .in = cells, .out = cell_gate(cell, GATE_G), .bytes = cell->bytes};
		lut_row(cell->call->isa, &row, cell->n_outputs, &ignored);
		cells = row.out;
	}
	cell_product(cell, &l->h, cells, cell_gate(cell, GATE_O), cell->out, saturated);
}

static void run(struct kernel_call *call)
{
	struct lstm l;
	lstm_init(&l, call);
	struct cell *cell = &l.cell;
	int64_t saturated = 0, ignored = 0;
	while (cell_next(cell)) {
		cell_sums(cell, 0, N_GATES, cell->state);
		if (cell->stopped)
			return;
		cell_lookup(cell, &l.sigmoid, GATE_I, 1, &ignored);
		cell_lookup(cell, &l.tanh, GATE_G, 1, &ignored);
		cell_lookup(cell, &l.sigmoid, GATE_F, 2, &ignored);
		if (l.rules == RULES_MLI2_0)
			next_cells(&l, &saturated);
		else
			next_cells_1_1(&l, &saturated);
		store(&l, &saturated);
	}
	call->counts.saturated = saturated;
	/* cell_out, which was there with the last state. */
	if (!cell->stopped)
		kernel_step(call, cell->n_outputs);
}

static int64_t steps(const struct kernel_call *call)
{
	return cell_work_steps(call, &forms[rules_of(call)], 0);
}

const struct kernel kernel_lstm_cell = {
	.number = NPUMEM_KERNEL_LSTM_CELL,
	.in_place = true,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << WEIGHTS_IN | 1 << WEIGHTS_OUT | 1 << WEIGHTS,
	.steps = steps,
	.run = run,
};
