/* What the recurrent cells share: their tensors, the walk along a sequence, and the sums that go into the gates.
 *
 * in [T,K,1,1], one step a row; prev_out [1,M,1,1], the state before the first step; weights [G,M,1,K] for in and
 * [G,M,1,M] for the state, or joined in one [G,M,1,K+M]; bias [G,M,1,1]; out [T,M,1,1], the state after each step
 * in the order they were made, or [1,M,1,1], after the last. The state of a later step has out's format. Of a
 * stacked cell all gates are outputs: out [G,M,1,1], after its one step.
 *
 * Counts: `wrapped`, the accumulators of the gates' sums. `saturated`, the elements of the state, and of an lstm's
 * cell, that a step clamped to their containers. A gate's sum that is clamped to the range of its table does not
 * count: the function is flat there. */
#ifndef DEVICE_CELL_H
#define DEVICE_CELL_H

#include "daemon/device/fixed/rows/lut.h"
#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/fixed/rows/sums.h"
#include "daemon/device/operations/kernel.h"

/* Numbers of act='s choices. */
enum cell_act { CELL_ACT_NONE = 1, CELL_ACT_TANH, CELL_ACT_SIGM };

/* What one kernel's cell is like. */
struct cell_form {
	int64_t gates;
	unsigned in, prev_out, weights_in, weights_out, bias, out; /* places of its roles in the row */
	/* One weights tensor, which is at both places. The rules of mli 1.1: mode= instead of direction= and
	 * results=, and one accumulator for both sums (fixed/rescaled_sum.h) instead of one each
	 * (fixed/multi_sum.h). */
	bool joint;
	bool stacked; /* mode=one_to_one: each gate is a row of out */
};

/* Types, shapes, bias format, parameters: 0 or INVALID. */
int cell_check(const struct kernel_call *call, const struct cell_form *form, struct npumem_error *error);
/* A parameter that only the other rules have was not given: 0 or INVALID. */
int cell_check_absent(const struct kernel_call *call, int number, const char *why, struct npumem_error *error);

/* For cells without a rule for fx8: the role is fx16. */
int cell_check_fx16(const struct kernel_call *call, unsigned role, struct npumem_error *error);

struct cell {
	struct kernel_call *call;
	const struct cell_form *form;
	unsigned bytes, weight_bytes; /* of an element */
	int64_t n_steps, n_inputs, n_outputs;
	int64_t n_told; /* elements of out that a step makes, where it makes any */
	bool backward, all;
	int64_t gate_frac_bits; /* of the gates' sums */
	int64_t unit_frac_bits; /* of what tables give: 7 or 15 */
	int64_t high;		/* of the container */
	uint8_t *gates;		/* their sums: [G,M], in the container */
	/* of the step under way */
	int64_t step;
	const uint8_t *in, *state;
	int64_t state_frac_bits;
	uint8_t *out;
	struct multi_sum multi;
	struct rescaled_sum rescaled;
	int64_t products, looked; /* that were made in this step, and those of them that were told */
	bool stopped;
};

/* The gates' sums; a kernel's own needs come behind them. */
size_t cell_scratch_bytes(const struct kernel_call *call, const struct cell_form *form);
/* Its weights, as struct kernel's functions pack them. */
size_t cell_pack_bytes(const struct kernel_call *call, const struct cell_form *form);
bool cell_pack(const struct kernel_call *call, const struct cell_form *form, void *pack);

/* `apart`: elements of a state that are made one by one. */
int64_t cell_work_steps(const struct kernel_call *call, const struct cell_form *form, int64_t apart);

/* Steps in order:
 *
 *	for (cell_begin(&cell, call, &form, frac_bits); cell_next(&cell);)
 *		… cell_sums(&cell, 0, form.gates, cell.state) …
 *		… M elements to cell.out
 *
 * Where only the last state is wanted, cell.out is cell.state from the second step on. */
void cell_begin(struct cell *cell, struct kernel_call *call, const struct cell_form *form, int64_t gate_frac_bits);
bool cell_next(struct cell *cell);

/* cell->gates of `n` gates from gate `first` on, of the step's input and of a state with state_frac_bits. Returns
 * how many of them were clamped. Where cell->stopped is set after it the step is no longer wanted. */
int64_t cell_sums(struct cell *cell, unsigned first, unsigned n, const void *state);

static inline uint8_t *cell_gate(const struct cell *cell, unsigned gate)
{
	return cell->gates + gate * cell->n_outputs * cell->bytes;
}

/* cell_gate of `n` gates from gate `first` on through a table that the reader reads. Adds to *saturated. */
void cell_lookup(const struct cell *cell, const struct lut_reader *reader, unsigned first, unsigned n,
		 int64_t *saturated);

/* A product of two rows of M elements of the container, to be rounded by `shift` into it; its sources come later.
 */
void cell_product_init(const struct cell *cell, int64_t shift, struct row *row);
/* out = a * b, so rounded. Adds to *saturated. */
void cell_product(const struct cell *cell, struct row *row, const void *a, const void *b, void *out,
		  int64_t *saturated);

#endif
