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

static const struct cell_form form = {N_GATES, IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, BIAS, OUT, false, false};

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

static size_t pack_bytes(const struct kernel_call *call)
{
	return cell_pack_bytes(call, &form);
}

static bool pack(const struct kernel_call *call, void *to)
{
	return cell_pack(call, &form, to);
}

struct gru {
	struct cell cell;
	struct lut_reader sigmoid, tanh;
	uint8_t *reset;		  /* r*h */
	struct row product, rest; /* by the tables' unit; 1 - z */
};

static void gru_init(struct gru *g, struct kernel_call *call)
{
	int64_t exact = operands_get(call, IN)->frac_bits + operands_get(call, WEIGHTS_IN)->frac_bits;
	int64_t gate = exact < GATE_FRAC_BITS ? exact : GATE_FRAC_BITS;
	enum lut_library library = lut_choice(call, LUT_MLI2_0);
	int dtype = operands_get(call, IN)->dtype;
	lut_reader_init(&g->sigmoid, lut_find(LUT_SIGMOID, library), gate, call->rounding);
	lut_reader_init(&g->tanh, lut_find(LUT_TANH, library), gate, call->rounding);
	g->reset = (uint8_t *)call->scratch + cell_scratch_bytes(call, &form);
	cell_begin(&g->cell, call, &form, gate);
	cell_product_init(&g->cell, g->cell.unit_frac_bits, &g->product);
	g->rest = (struct row){.in1 = {.value = (int32_t)g->cell.high}, .in2 = row_source(dtype), .sign = -1};
	align_init(&g->rest.align, 0, 0);
	requantize_init(&g->rest.to, dtype, 0, call->rounding);
	row_init_sum(&g->rest, call->isa, row_magnitude(dtype), row_magnitude(dtype));
}

/* n*(1 - z) into gate N, and then the state. */
static void rows_of_state(const struct gru *g, struct row *fresh, struct row *sum)
{
	const struct cell *cell = &g->cell;
	const struct kernel_operand *out = operands_get(cell->call, OUT);
	int64_t most = row_magnitude(out->dtype);
	cell_product_init(cell, 2 * cell->unit_frac_bits - out->frac_bits, fresh);
	*sum = (struct row){.in1 = row_source(out->dtype), .in2 = row_source(out->dtype), .sign = 1};
	align_init(&sum->align, out->frac_bits, cell->state_frac_bits);
	requantize_init(&sum->to, out->dtype, sum->align.frac_bits - out->frac_bits, cell->call->rounding);
	row_init_sum(sum, cell->call->isa, most, most);
}

/* h of this step, of elements [m, m + n), in place: gate Z has h*z, gate R 1 - z. Returns how often an element was
 * clamped: once in n*(1 - z), once in the sum. */
static int64_t update(const struct gru *g, struct row *fresh, struct row *sum, int64_t m, int64_t n)
{
	const struct cell *cell = &g->cell;
	int64_t clamped = 0;
	fresh->in1.data = fresh->out = cell_gate(cell, GATE_N) + m * cell->bytes;
	fresh->in2.data = cell_gate(cell, GATE_R) + m * cell->bytes;
	row_product(fresh, n, &clamped);
	sum->in1.data = fresh->out;
	sum->in2.data = cell_gate(cell, GATE_Z) + m * cell->bytes;
	sum->out = cell->out + m * cell->bytes;
	row_sum(sum, n, &clamped);
	return clamped;
}

/* h of this step. An element counts as saturated once, whether n*(1 - z) or the sum was clamped: where the first
 * can be, it is made by itself. */
static void next_state(struct gru *g, int64_t *saturated)
{
	const struct cell *cell = &g->cell;
	uint8_t *z = cell_gate(cell, GATE_Z);
	struct row fresh, sum;
	int64_t ignored = 0;
	rows_of_state(g, &fresh, &sum);
	g->rest.in2.data = z;
	g->rest.out = cell_gate(cell, GATE_R);
	row_sum(&g->rest, cell->n_outputs, &ignored);
	cell_product(cell, &g->product, cell->state, z, z, &ignored);
	int64_t at_once = fresh.to.shift >= cell->unit_frac_bits ? cell->n_outputs : 1;
	for (int64_t m = 0; m < cell->n_outputs; m += at_once) {
		int64_t clamped = update(g, &fresh, &sum, m, at_once);
		*saturated += at_once > 1 ? clamped : clamped > 0;
	}
}

static void run(struct kernel_call *call)
{
	struct gru g;
	struct cell *cell = &g.cell;
	int64_t saturated = 0, ignored = 0;
	gru_init(&g, call);
	while (cell_next(cell)) {
		cell_sums(cell, GATE_Z, 2, cell->state);
		if (cell->stopped)
			return;
		cell_lookup(cell, &g.sigmoid, GATE_Z, 2, &ignored);
		cell_product(cell, &g.product, cell->state, cell_gate(cell, GATE_R), g.reset, &ignored);
		cell_sums(cell, GATE_N, 1, g.reset);
		if (cell->stopped)
			return;
		cell_lookup(cell, &g.tanh, GATE_N, 1, &ignored);
		next_state(&g, &saturated);
	}
	call->counts.saturated = saturated;
}

static int64_t steps(const struct kernel_call *call)
{
	/* As next_state() chooses. */
	bool at_once = operands_get(call, OUT)->frac_bits <= lut_choice_frac_bits(NPUMEM_FX16);
	return cell_work_steps(call, &form, at_once ? 0 : operands_get(call, PREV_OUT)->shape.c);
}

const struct kernel kernel_gru_cell = {
	.number = NPUMEM_KERNEL_GRU_CELL,
	.in_place = true,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << WEIGHTS_IN | 1 << WEIGHTS_OUT,
	.steps = steps,
	.run = run,
};
