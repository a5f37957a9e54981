/* The plain recurrent cell by the rules of mli 1.1: h = act(bias + W x + U h). Without an activation the sum is
 * rounded to out's format at once; with one out has the tables' format. In mode=one_to_one weights may be those of
 * several gates, from which a caller builds a cell of its own: out has a row for each. */
#include <string.h>

#include "daemon/device/kernel_support/cell.h"
#include "daemon/device/kernel_support/elementwise/lut_choice.h"
#include "daemon/device/kernel_support/operands.h"

enum { IN, PREV_OUT, WEIGHTS, BIAS, OUT };

/* A sum past the ends of the tables is flat: so many integer bits are enough. */
enum { GATE_INTEGER_BITS = 3 };

enum { MODE_ONE_TO_ONE = 3 };

static struct cell_form form_of(const struct kernel_call *call)
{
	bool stacked = kernel_param(call, NPUMEM_PARAM_MODE, 0, 0) == MODE_ONE_TO_ONE;
	int64_t gates = stacked ? operands_get(call, WEIGHTS)->shape.n : 1;
	return (struct cell_form){gates, IN, PREV_OUT, WEIGHTS, WEIGHTS, BIAS, OUT, true, stacked};
}

static enum cell_act act_of(const struct kernel_call *call)
{
	return (enum cell_act)kernel_param(call, NPUMEM_PARAM_ACT, 0, CELL_ACT_NONE);
}

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct cell_form form = form_of(call);
	int status = cell_check(call, &form, error);
	return status || act_of(call) == CELL_ACT_NONE ? status : lut_choice_check(call, OUT, error);
}

static size_t scratch_bytes(const struct kernel_call *call)
{
	const struct cell_form form = form_of(call);
	return cell_scratch_bytes(call, &form);
}

static size_t pack_bytes(const struct kernel_call *call)
{
	const struct cell_form form = form_of(call);
	return cell_pack_bytes(call, &form);
}

static bool pack(const struct kernel_call *call, void *to)
{
	const struct cell_form form = form_of(call);
	return cell_pack(call, &form, to);
}

static void run(struct kernel_call *call)
{
	const struct cell_form form = form_of(call);
	const struct kernel_operand *out = operands_get(call, OUT);
	enum cell_act act = act_of(call);
	int64_t gate =
		act == CELL_ACT_NONE ? out->frac_bits : lut_choice_frac_bits(out->dtype) - GATE_INTEGER_BITS;
	struct lut_reader reader;
	lut_reader_init(&reader,
			lut_find(act == CELL_ACT_SIGM ? LUT_SIGMOID : LUT_TANH, lut_choice(call, LUT_MLI1_1)),
			gate, call->rounding);
	struct cell cell;
	int64_t saturated = 0, ignored = 0;
	for (cell_begin(&cell, call, &form, gate); cell_next(&cell);) {
		int64_t *clamped = act == CELL_ACT_NONE ? &saturated : &ignored;
		*clamped += cell_sums(&cell, 0, (unsigned)form.gates, cell.state);
		if (cell.stopped)
			return;
		if (act != CELL_ACT_NONE)
			cell_lookup(&cell, &reader, 0, (unsigned)form.gates, &saturated);
		memcpy(cell.out, cell.gates, (size_t)(cell.n_told * cell.bytes));
	}
	call->counts.saturated = saturated;
}

static int64_t steps(const struct kernel_call *call)
{
	const struct cell_form form = form_of(call);
	return cell_work_steps(call, &form, 0);
}

const struct kernel kernel_basic_rnn_cell = {
	.number = NPUMEM_KERNEL_BASIC_RNN_CELL,
	.in_place = true,
	.check = check,
	.scratch_bytes = scratch_bytes,
	.pack_bytes = pack_bytes,
	.pack = pack,
	.packed = 1 << WEIGHTS,
	.steps = steps,
	.run = run,
};
