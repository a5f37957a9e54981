/* Checks of cells, steps, and the sums of their gates. */
#include "daemon/device/kernel_support/cell.h"

#include "daemon/device/fixed/dot.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/windows/weighted.h"

/* In the order of the parameters' choices. */
enum { CELL_FORWARD = 1, CELL_BACKWARD };
enum { CELL_ALL = 1, CELL_LAST };
enum { CELL_BATCH_TO_BATCH = 1, CELL_BATCH_TO_LAST, CELL_ONE_TO_ONE };

static bool keeps_all(const struct kernel_call *call, const struct cell_form *form)
{
	if (form->joint)
		return kernel_param(call, NPUMEM_PARAM_MODE, 0, CELL_BATCH_TO_BATCH) == CELL_BATCH_TO_BATCH;
	return kernel_param(call, NPUMEM_PARAM_RESULTS, 0, CELL_ALL) == CELL_ALL;
}

static int check_types(const struct kernel_call *call, const struct cell_form *form, struct npumem_error *error)
{
	const struct weighted_roles roles = {form->in, form->weights_in, form->bias, form->out};
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
	int status = operands_check_choices(call, error);
	if (!status)
		status = check_types(call, form, error);
	struct npumem_dims want = {one_to_one ? 1 : in->n, in->c, 1, 1};
	if (!status)
		status = operands_check_shape(call, form->in, &want,
					      one_to_one ? "mode=one_to_one takes" : "a sequence has", error);
	want = (struct npumem_dims){1, prev_out->c, 1, 1};
	if (!status)
		status = operands_check_shape(call, form->prev_out, &want, "a state has", error);
	if (!status)
		status = check_weights(call, form, error);
	want.n = keeps_all(call, form) ? in->n : 1;
	return status ? status
		      : operands_check_shape(call, form->out, &want,
					     form->joint ? "in, prev_out and mode give"
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
	return (size_t)(form->gates * operands_get(call, form->prev_out)->shape.c) * sizeof(int32_t);
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
		.sums = call->scratch,
		.step = -1,
	};
	npumem_dtype_range(in->dtype, &cell->low, &cell->high);
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
		cell->stopped = !kernel_step(call, told ? cell->n_outputs : 0);
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
static bool look(struct cell *cell)
{
	int64_t step = cell->form->gates * cell->n_outputs * (cell->n_inputs + cell->n_outputs);
	int64_t before = cell->all ? 0 : cell->step, steps = cell->all ? 1 : cell->n_steps;
	cell->looked = cell->products;
	/* In floating point, as steps times products may be anything. */
	double done = (double)before + (double)cell->products / (double)step;
	return kernel_part(cell->call, cell->n_outputs, (int64_t)(done * KERNEL_PARTS), steps * KERNEL_PARTS);
}

/* The products of two rows of n; false where they are no longer wanted. */
static bool add_products(struct cell *cell, const uint8_t *a, const uint8_t *b, int64_t n, int64_t *sum)
{
	int64_t piece = kernel_piece(cell->call);
	*sum = 0;
	for (int64_t i = 0; i < n && !cell->stopped; i += piece) {
		int64_t count = n - i < piece ? n - i : piece;
		*sum += dot(cell->call->isa, a + i * cell->bytes, cell->bytes, b + i * cell->weight_bytes,
			    cell->weight_bytes, count);
		cell->products += count;
		if (cell->products - cell->looked >= piece)
			cell->stopped = !look(cell);
	}
	return !cell->stopped;
}

int64_t cell_sums(struct cell *cell, unsigned first, unsigned n, const void *state)
{
	const struct cell_form *form = cell->form;
	struct kernel_counts *counts = &cell->call->counts;
	const struct kernel_operand *bias = operands_get(cell->call, form->bias);
	const uint8_t *weights[] = {operands_get(cell->call, form->weights_in)->data,
				    operands_get(cell->call, form->weights_out)->data};
	int64_t length[] = {cell->n_inputs, cell->n_outputs}, clamped = 0;
	if (form->joint) {
		weights[1] += length[0] * cell->weight_bytes;
		length[0] = length[1] = cell->n_inputs + cell->n_outputs;
	}
	int64_t end = (first + n) * cell->n_outputs;
	for (int64_t row = first * cell->n_outputs; row < end; row++) {
		int64_t b = bias ? container_get(bias->data, cell->weight_bytes, row) : 0;
		const uint8_t *rows[] = {weights[0] + row * length[0] * cell->weight_bytes,
					 weights[1] + row * length[1] * cell->weight_bytes};
		int64_t sums[2];
		if (!add_products(cell, cell->in, rows[0], cell->n_inputs, &sums[0]) ||
		    !add_products(cell, state, rows[1], cell->n_outputs, &sums[1]))
			break;
		int64_t sum = form->joint ? rescaled_sum_join(&cell->rescaled, sums[0], sums[1], b, &clamped,
							      &counts->wrapped)
					  : multi_sum_join(&cell->multi, sums, 1, b, &clamped, &counts->wrapped);
		cell->sums[row] = (int32_t)sum;
	}
	counts->macs += n * cell->n_outputs * (cell->n_inputs + cell->n_outputs);
	return clamped;
}
