/* Checks of cells, steps, and the sums of their gates.
 *
 * A pack has the rows of a gate in panels of up to CELL_PANEL side by side, as gemv.h's pairs: first those of the
 * weights for the input, then those for the state, so that a step reads it from one end to the other. */
#include "daemon/device/kernel_support/cell.h"

#include <string.h>

#include "daemon/device/fixed/rows/gemv.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/steps.h"
#include "daemon/device/kernel_support/windows/weighted.h"
#include "daemon/device/least.h"

/* In the order of the parameters' choices. */
enum { CELL_FORWARD = 1, CELL_BACKWARD };
enum { CELL_ALL = 1, CELL_LAST };
enum { CELL_BATCH_TO_BATCH = 1, CELL_BATCH_TO_LAST, CELL_ONE_TO_ONE };
enum {
	CELL_PANEL = 128,  /* rows of weights at a time, at most */
	CELL_PRODUCTS = 8, /* in the time of a step, at least */
};

static bool keeps_all(const struct kernel_call *call, const struct cell_form *form)
{
	if (form->joint)
		return kernel_param(call, NPUMEM_PARAM_MODE, 0, CELL_BATCH_TO_BATCH) == CELL_BATCH_TO_BATCH;
	return kernel_param(call, NPUMEM_PARAM_RESULTS, 0, CELL_ALL) == CELL_ALL;
}

static int check_types(const struct kernel_call *call, const struct cell_form *form, struct npumem_error *error)
{
	const struct weighted_roles roles = {form->in, form->weights_in, form->bias, form->out, false};
	int64_t inputs = operands_get(call, form->in)->shape.c;
	int64_t outputs = operands_get(call, form->prev_out)->shape.c;
	int status = weighted_check(call, &roles, inputs > outputs ? inputs : outputs, error);
	if (!status)
		status = operands_check_same_dtype(call, form->prev_out, form->in, error);
	return status ? status : operands_check_same_dtype(call, form->weights_out, form->weights_in, error);
}

static int check_weights(const struct kernel_call *call, const struct cell_form *form, struct npumem_error *error)
{
	int64_t inputs = operands_get(call, form->in)->shape.c;
	int64_t outputs = operands_get(call, form->prev_out)->shape.c;
	struct npumem_dims want = {form->gates, outputs, 1, form->joint ? inputs + outputs : inputs};
	int status = operands_check_shape(call, form->weights_in, &want, "the gates, prev_out and in need", error);
	want.w = outputs;
	if (!status && !form->joint)
		status =
			operands_check_shape(call, form->weights_out, &want, "the gates and prev_out need", error);
	want.w = 1;
	if (!status && operands_get(call, form->bias))
		status = operands_check_shape(call, form->bias, &want, "the gates and prev_out need", error);
	return status;
}

int cell_check(const struct kernel_call *call, const struct cell_form *form, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, form->in)->shape;
	const struct npumem_dims *prev_out = &operands_get(call, form->prev_out)->shape;
	bool one_to_one = form->joint && kernel_param(call, NPUMEM_PARAM_MODE, 0, 0) == CELL_ONE_TO_ONE;
	int status = check_types(call, form, error);
	struct npumem_dims want = {one_to_one ? 1 : in->n, in->c, 1, 1};
	if (!status)
		status = operands_check_shape(call, form->in, &want,
					      one_to_one ? "mode=one_to_one takes" : "a sequence has", error);
	want = (struct npumem_dims){1, prev_out->c, 1, 1};
	if (!status)
		status = operands_check_shape(call, form->prev_out, &want, "a state has", error);
	if (!status)
		status = check_weights(call, form, error);
	want.n = form->stacked ? form->gates : keeps_all(call, form) ? in->n : 1;
	return status ? status
		      : operands_check_shape(call, form->out, &want,
					     form->stacked ? "the gates, prev_out and mode give"
					     : form->joint ? "in, prev_out and mode give"
							   : "in, prev_out and results give",
					     error);
}

int cell_check_absent(const struct kernel_call *call, int number, const char *why, struct npumem_error *error)
{
	const char *name = npumem_param_by_number(number)->name;
	if (call->params.given[number].n_values == 0)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID, "%s: %s is given, but %s", call->row->name, name, why);
	npumem_error_text(error, "parameter", name);
	return NPUMEM_INVALID;
}

int cell_check_fx16(const struct kernel_call *call, unsigned role, struct npumem_error *error)
{
	int dtype = operands_get(call, role)->dtype;
	if (dtype != NPUMEM_FX8)
		return 0;
	npumem_error_set(error, NPUMEM_INVALID,
			 "%s: %s is fx8, but must be fx16: mli2_0 has no rule for fx8 gates", call->row->name,
			 call->roles[role].name);
	npumem_error_text(error, "role", call->roles[role].name);
	return NPUMEM_INVALID;
}

size_t cell_scratch_bytes(const struct kernel_call *call, const struct cell_form *form)
{
	return (size_t)(form->gates * operands_get(call, form->prev_out)->shape.c) *
	       npumem_dtype_bytes(operands_get(call, form->in)->dtype);
}

static int64_t even(int64_t n)
{
	return n + n % 2;
}

/* Of a row of both weights, in elements. */
static int64_t packed_terms(const struct kernel_call *call, const struct cell_form *form)
{
	return even(operands_get(call, form->in)->shape.c) + even(operands_get(call, form->prev_out)->shape.c);
}

static unsigned weight_bytes(const struct kernel_call *call, const struct cell_form *form)
{
	return npumem_dtype_bytes(operands_get(call, form->weights_in)->dtype);
}

static int64_t gate_bytes(const struct kernel_call *call, const struct cell_form *form)
{
	return operands_get(call, form->prev_out)->shape.c * packed_terms(call, form) * weight_bytes(call, form);
}

size_t cell_pack_bytes(const struct kernel_call *call, const struct cell_form *form)
{
	return (size_t)(form->gates * gate_bytes(call, form));
}

/* n terms of one row, into column `at` of a panel. False where the rest is no longer wanted. */
static bool pack_row(const struct kernel_call *call, const uint8_t *from, int64_t n, unsigned bytes, int64_t width,
		     int64_t at, uint8_t *to, int64_t *pending)
{
	int64_t piece = even(kernel_piece(call));
	for (int64_t k = 0, end; k < n; k = end) {
		end = least(n, k + piece);
		uint8_t *pair = to + (k * width + 2 * at) * bytes;
		for (int64_t i = k; i < end; i += 2, pair += 2 * width * bytes) {
			memset(pair, 0, 2 * bytes);
			memcpy(pair, from + i * bytes, (size_t)least(end - i, 2) * bytes);
		}
		if (!kernel_look(call, end - k, pending))
			return false;
	}
	return true;
}

/* The weights of rows [row, row + n) of all gates. */
static bool pack_panel(const struct kernel_call *call, const struct cell_form *form, int64_t row, int64_t n,
		       uint8_t *to, int64_t *pending)
{
	unsigned bytes = weight_bytes(call, form);
	int64_t inputs = operands_get(call, form->in)->shape.c,
		outputs = operands_get(call, form->prev_out)->shape.c;
	const uint8_t *in = operands_get(call, form->weights_in)->data,
		      *out = form->joint ? in + inputs * bytes : operands_get(call, form->weights_out)->data;
	int64_t in_row = form->joint ? inputs + outputs : inputs, out_row = form->joint ? in_row : outputs;
	for (int64_t i = 0; i < n; i++)
		if (!pack_row(call, in + (row + i) * in_row * bytes, inputs, bytes, n, i, to, pending) ||
		    !pack_row(call, out + (row + i) * out_row * bytes, outputs, bytes, n, i,
			      to + even(inputs) * n * bytes, pending))
			return false;
	return true;
}

bool cell_pack(const struct kernel_call *call, const struct cell_form *form, void *pack)
{
	int64_t outputs = operands_get(call, form->prev_out)->shape.c, pending = 0;
	uint8_t *to = pack;
	for (int64_t gate = 0; gate < form->gates; gate++)
		for (int64_t row = 0, n; row < outputs; row += n) {
			n = least(outputs - row, CELL_PANEL);
			if (!pack_panel(call, form, gate * outputs + row, n, to, &pending))
				return false;
			to += n * packed_terms(call, form) * weight_bytes(call, form);
		}
	return true;
}

int64_t cell_work_steps(const struct kernel_call *call, const struct cell_form *form, int64_t apart)
{
	/* A step, and of it a row of weights, a product and an element of a gate, which goes through its table. */
	enum { STEP = 2000, ROW = 20, PRODUCTS = 2, ELEMENT = 8 };
	const struct kernel_operand *in = operands_get(call, form->in);
	double outputs = (double)operands_get(call, form->prev_out)->shape.c, rows = (double)form->gates * outputs;
	double terms = (double)in->shape.c + outputs;
	double step = STEP + rows * (terms / PRODUCTS + ROW + ELEMENT) + (double)apart * 2 * STEPS_ROW;
	return steps_whole((double)in->shape.n * step);
}

void cell_begin(struct cell *cell, struct kernel_call *call, const struct cell_form *form, int64_t gate_frac_bits)
{
	const struct kernel_operand *in = operands_get(call, form->in);
	*cell = (struct cell){
		.call = call,
		.form = form,
		.bytes = npumem_dtype_bytes(in->dtype),
		.weight_bytes = npumem_dtype_bytes(operands_get(call, form->weights_in)->dtype),
		.n_steps = in->shape.n,
		.n_inputs = in->shape.c,
		.n_outputs = operands_get(call, form->prev_out)->shape.c,
		.backward = !form->joint &&
			    kernel_param(call, NPUMEM_PARAM_DIRECTION, 0, CELL_FORWARD) == CELL_BACKWARD,
		.all = keeps_all(call, form),
		.gate_frac_bits = gate_frac_bits,
		.unit_frac_bits = lut_choice_frac_bits(in->dtype),
		.gates = call->scratch,
		.step = -1,
	};
	cell->n_told = cell->n_outputs * (form->stacked ? form->gates : 1);
	int64_t low;
	npumem_dtype_range(in->dtype, &low, &cell->high);
	call->counts = (struct kernel_counts){.macs = 0};
}

/* The state of the coming steps has the format of role `as`. */
static void set_state(struct cell *cell, const void *state, unsigned as)
{
	const struct kernel_call *call = cell->call;
	const struct cell_form *form = cell->form;
	const struct kernel_operand *bias = operands_get(call, form->bias);
	int64_t in = operands_get(call, form->in)->frac_bits;
	int64_t weights_in = operands_get(call, form->weights_in)->frac_bits;
	int64_t weights_out = operands_get(call, form->weights_out)->frac_bits;
	cell->state = state;
	cell->state_frac_bits = operands_get(call, as)->frac_bits;
	int64_t shifts[] = {in + weights_in - cell->gate_frac_bits,
			    cell->state_frac_bits + weights_out - cell->gate_frac_bits};
	int64_t bias_shift = bias ? in + weights_in - bias->frac_bits : 0;
	struct requantize result;
	requantize_init(&result, operands_get(call, form->in)->dtype, shifts[1], call->rounding);
	if (form->joint)
		rescaled_sum_init(&cell->rescaled, cell->bytes, bias_shift, in - cell->state_frac_bits, &result);
	else
		multi_sum_init(&cell->multi, cell->bytes, shifts, 2, bias_shift, &result);
}

bool cell_next(struct cell *cell)
{
	struct kernel_call *call = cell->call;
	int64_t row = cell->n_outputs * cell->bytes;
	if (cell->stopped)
		return false;
	if (cell->step >= 0) {
		bool told = cell->all || cell->step == cell->n_steps - 1;
		cell->stopped = !kernel_step(call, told ? cell->n_told : 0);
		if (cell->stopped)
			return false;
	}
	cell->products = cell->looked = 0;
	if (++cell->step == cell->n_steps)
		return false;
	if (cell->step == 0) {
		set_state(cell, operands_get(call, cell->form->prev_out)->data, cell->form->prev_out);
		cell->out = operands_get(call, cell->form->out)->data;
	} else {
		if (cell->step == 1)
			set_state(cell, cell->out, cell->form->out);
		cell->state = cell->out;
		cell->out += cell->all ? row : 0;
	}
	int64_t at = cell->backward ? cell->n_steps - 1 - cell->step : cell->step;
	cell->in = (const uint8_t *)operands_get(call, cell->form->in)->data + at * cell->n_inputs * cell->bytes;
	return true;
}

/* Tells what was done of the step, or where only the last state is an output, of all steps. */
static bool cell_part(struct cell *cell)
{
	int64_t step = cell->form->gates * cell->n_outputs * (cell->n_inputs + cell->n_outputs);
	int64_t before = cell->all ? 0 : cell->step, steps = cell->all ? 1 : cell->n_steps;
	cell->looked = cell->products;
	/* In floating point, as steps times products may be anything. */
	double done = (double)before + (double)cell->products / (double)step;
	return kernel_part(cell->call, cell->n_told, (int64_t)(done * KERNEL_PARTS), steps * KERNEL_PARTS);
}

/* Adds the products of a vector of n elements with a panel of weights; false where they are no longer wanted. */
static bool add_products(struct cell *cell, const uint8_t *vector, const uint8_t *weights, int64_t n,
			 int64_t width, int64_t *sums)
{
	int64_t piece = kernel_piece(cell->call) * CELL_PRODUCTS, step = even(piece / width + 1);
	for (int64_t k = 0; k < n && !cell->stopped; k += step) {
		int64_t count = n - k < step ? n - k : step;
		const struct gemv gemv = {
			.vector = vector + k * cell->bytes,
			.vector_bytes = cell->bytes,
			.weights = weights + k * width * cell->weight_bytes,
			.weight_bytes = cell->weight_bytes,
			.n_terms = count,
			.row = width,
			.pairs = true,
		};
		gemv_columns(cell->call->isa, &gemv, width, sums);
		cell->products += count * width;
		if (cell->products - cell->looked >= piece)
			cell->stopped = !cell_part(cell);
	}
	return !cell->stopped;
}

/* Elements [first, first + n) of the gates, of a panel's sums: those of the input, and those of the state. */
static void join(const struct cell *cell, const int64_t *sums, int64_t first, int64_t n,
		 struct sums_counts *counts)
{
	const struct kernel_call *call = cell->call;
	const struct kernel_operand *operand = operands_get(call, cell->form->bias);
	uint8_t *to = cell->gates + first * cell->bytes;
	struct sums_bias bias = {NULL, cell->weight_bytes};
	if (operand)
		bias.data = (const uint8_t *)operand->data + first * cell->weight_bytes;
	if (cell->form->joint)
		sums_rescaled(call->isa, &cell->rescaled, sums, CELL_PANEL, &bias, n, to, counts);
	else
		sums_multi(call->isa, &cell->multi, sums, CELL_PANEL, &bias, n, to, counts);
}

/* One gate; false where it is no longer wanted. */
static bool sum_gate(struct cell *cell, unsigned gate, const void *state, struct sums_counts *counts)
{
	const struct kernel_call *call = cell->call;
	const uint8_t *panel = (const uint8_t *)call->pack + gate * gate_bytes(call, cell->form);
	int64_t in_bytes = even(cell->n_inputs) * cell->weight_bytes;
	int64_t row_bytes = packed_terms(call, cell->form) * cell->weight_bytes;
	for (int64_t row = 0, width; row < cell->n_outputs; row += width) {
		int64_t sums[2 * CELL_PANEL] = {0};
		width = least(cell->n_outputs - row, CELL_PANEL);
		if (!add_products(cell, cell->in, panel, cell->n_inputs, width, sums) ||
		    !add_products(cell, state, panel + width * in_bytes, cell->n_outputs, width,
				  sums + CELL_PANEL))
			return false;
		join(cell, sums, gate * cell->n_outputs + row, width, counts);
		panel += width * row_bytes;
	}
	return true;
}

int64_t cell_sums(struct cell *cell, unsigned first, unsigned n, const void *state)
{
	struct sums_counts counts = {0, 0};
	for (unsigned gate = first; gate < first + n; gate++)
		if (!sum_gate(cell, gate, state, &counts))
			break;
	cell->call->counts.wrapped += counts.wrapped;
	cell->call->counts.macs += n * cell->n_outputs * (cell->n_inputs + cell->n_outputs);
	return counts.saturated;
}

void cell_lookup(const struct cell *cell, const struct lut_reader *reader, unsigned first, unsigned n,
		 int64_t *saturated)
{
	const struct lut_row row = {.reader = reader,
				    .in = cell_gate(cell, first),
				    .out = cell_gate(cell, first),
				    .bytes = cell->bytes};
	lut_row(cell->call->isa, &row, n * cell->n_outputs, saturated);
}

void cell_product_init(const struct cell *cell, int64_t shift, struct row *row)
{
	int dtype = operands_get(cell->call, cell->form->in)->dtype;
	*row = (struct row){.in1 = row_source(dtype), .in2 = row_source(dtype)};
	requantize_init(&row->to, dtype, shift, cell->call->rounding);
	row_init_product(row, cell->call->isa, row_magnitude(dtype) * row_magnitude(dtype));
}

void cell_product(const struct cell *cell, struct row *row, const void *a, const void *b, void *out,
		  int64_t *saturated)
{
	row->in1.data = a;
	row->in2.data = b;
	row->out = out;
	row_product(row, cell->n_outputs, saturated);
}
