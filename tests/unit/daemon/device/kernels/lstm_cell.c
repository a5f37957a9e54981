/* lstm_cell: both rules against themselves written out, step by step; the cell in floating point; refusals. */
#include "tests/unit/daemon/device/kernels/cells.h"

enum { IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, WEIGHTS, BIAS, CELL_IN, OUT, CELL_OUT };
enum { MLI2_0 = 1, MLI1_1 };

struct form {
	int64_t t, k, m;
	int rules, act, lut; /* lut 0: not given */
	bool backward, last, has_bias;
	struct calls_types types;
	int64_t in, weights_in, weights_out, bias, state, cell, out; /* frac_bits */
};

static void set_up(struct calls *c, const struct form *f)
{
	calls_init(c, NPUMEM_KERNEL_LSTM_CELL);
	calls_add(c, "in", f->types.data, f->in, f->t, f->k, 1, 1);
	calls_add(c, "prev_out", f->types.data, f->state, 1, f->m, 1, 1);
	if (f->rules == MLI1_1) {
		calls_add(c, "weights", f->types.weights, f->weights_in, 4, f->m, 1, f->k + f->m);
	} else {
		calls_add(c, "weights_in", f->types.weights, f->weights_in, 4, f->m, 1, f->k);
		calls_add(c, "weights_out", f->types.weights, f->weights_out, 4, f->m, 1, f->m);
	}
	if (f->has_bias)
		calls_add(c, "bias", f->types.weights, f->bias, 4, f->m, 1, 1);
	calls_add(c, "cell_in", f->types.data, f->cell, 1, f->m, 1, 1);
	calls_add(c, "out", f->types.data, f->out, f->last ? 1 : f->t, f->m, 1, 1);
	calls_add(c, "cell_out", f->types.data, f->cell, 1, f->m, 1, 1);
	calls_param(c, NPUMEM_PARAM_RULES, f->rules == MLI1_1, f->rules, 0, 0, 0);
	if (f->rules == MLI1_1) {
		calls_param(c, NPUMEM_PARAM_MODE, f->last, 2, 0, 0, 0);
	} else {
		calls_param(c, NPUMEM_PARAM_DIRECTION, f->backward, 2, 0, 0, 0);
		calls_param(c, NPUMEM_PARAM_RESULTS, f->last, 2, 0, 0, 0);
	}
	calls_param(c, NPUMEM_PARAM_ACT, f->act != CELLS_NONE, f->act, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_LUT, f->lut > 0, f->lut, 0, 0, 0);
}

struct model {
	const struct calls *c;
	const struct form *f;
	unsigned bytes;
	int mode;
	struct tables sigmoid, tanh;
	int64_t x[CELLS_STATE_MAX], h[CELLS_STATE_MAX], cell[CELLS_STATE_MAX];
	int64_t h_frac_bits, gate_frac_bits;
	struct cells_counts counts;
};

/* The sum of gate row `row` before its table. */
static int64_t gate_of(struct model *p, int64_t row)
{
	const struct form *f = p->f;
	int64_t ignored = 0, bias = f->has_bias ? calls_get(p->c, BIAS, row) : 0;
	int64_t first = f->in + f->weights_in, bias_frac_bits = f->has_bias ? f->bias : first;
	p->counts.macs += f->k + f->m;
	if (f->rules == MLI1_1)
		return cells_carried(cells_dot(p->c, WEIGHTS, row, f->k + f->m, 0, p->x, f->k),
				     cells_dot(p->c, WEIGHTS, row, f->k + f->m, f->k, p->h, f->m), bias,
				     first - bias_frac_bits, f->in - p->h_frac_bits,
				     p->h_frac_bits + f->weights_in - p->gate_frac_bits, p->bytes, p->mode,
				     &ignored, &p->counts.wrapped);
	const struct cells_sum sums[] = {
		{cells_dot(p->c, WEIGHTS_IN, row, f->k, 0, p->x, f->k), first},
		{cells_dot(p->c, WEIGHTS_OUT, row, f->m, 0, p->h, f->m), p->h_frac_bits + f->weights_out}};
	return cells_partial(sums, 2, bias, bias_frac_bits, p->gate_frac_bits, p->bytes, p->mode, &ignored,
			     &p->counts.wrapped);
}

static int64_t table_of(const struct model *p, const struct tables *t, int64_t x, int64_t frac_bits)
{
	int64_t ignored = 0;
	return tables_result(t, x, frac_bits, p->bytes, p->mode, &ignored);
}

static int64_t new_cell(struct model *p, int64_t c, int64_t i, int64_t g, int64_t f)
{
	int64_t unit = p->bytes * 8 - 1, end = INT64_C(1) << unit, ignored = 0;
	if (p->f->rules == MLI2_0) {
		int64_t kept = cells_product(c, f, unit, p->bytes, p->mode, &ignored);
		int64_t fresh = cells_product(g, i, unit, p->bytes, p->mode, &ignored);
		return cells_add(kept, p->f->cell, fresh, unit, p->f->cell, p->bytes, p->mode,
				 &p->counts.saturated);
	}
	struct oracle fresh = oracle_shift(oracle_of(i * g), unit - p->f->cell, p->mode);
	return oracle_result(oracle_add(fresh, oracle_of(f * c)), unit, p->mode, -end, end - 1,
			     &p->counts.saturated);
}

static void step_of(struct model *p)
{
	int64_t m = p->f->m, unit = p->bytes * 8 - 1, gates[4][CELLS_STATE_MAX];
	for (int64_t row = 0; row < 4 * m; row++)
		gates[row / m][row % m] =
			table_of(p, row / m == 1 ? &p->tanh : &p->sigmoid, gate_of(p, row), p->gate_frac_bits);
	for (int64_t j = 0; j < m; j++) {
		p->cell[j] = new_cell(p, p->cell[j], gates[0][j], gates[1][j], gates[2][j]);
		int64_t a = p->cell[j], frac_bits = p->f->cell;
		if (p->f->act != CELLS_NONE) {
			a = table_of(p, p->f->act == CELLS_TANH ? &p->tanh : &p->sigmoid, a, frac_bits);
			frac_bits = unit;
		}
		p->h[j] = cells_product(a, gates[3][j], frac_bits + unit - p->f->out, p->bytes, p->mode,
					&p->counts.saturated);
	}
	p->h_frac_bits = p->f->out;
}

static void check_against_rules(struct calls *c, const struct form *f)
{
	calls_run(c);
	int library = f->lut ? f->lut : f->rules;
	struct model p = {.c = c,
			  .f = f,
			  .bytes = npumem_dtype_bytes(f->types.data),
			  .mode = (int)c->call.rounding,
			  .sigmoid = tables_of(TABLES_SIGMOID, library),
			  .tanh = tables_of(TABLES_TANH, library),
			  .h_frac_bits = f->state};
	p.gate_frac_bits = f->rules == MLI2_0 ? cells_least(10, f->in + f->weights_in) : p.bytes == 1 ? 4 : 12;
	for (int64_t j = 0; j < f->m; j++) {
		p.h[j] = calls_get(c, PREV_OUT, j);
		p.cell[j] = calls_get(c, CELL_IN, j);
	}
	for (int64_t t = 0; t < f->t; t++) {
		for (int64_t k = 0; k < f->k; k++)
			p.x[k] = calls_get(c, IN, (f->backward ? f->t - 1 - t : t) * f->k + k);
		step_of(&p);
		for (int64_t j = 0; j < f->m && (!f->last || t == f->t - 1); j++)
			ck_assert_int_eq(calls_get(c, OUT, (f->last ? 0 : t) * f->m + j), p.h[j]);
	}
	for (int64_t j = 0; j < f->m; j++)
		ck_assert_int_eq(calls_get(c, CELL_OUT, j), p.cell[j]);
	ck_assert_int_eq(c->call.counts.saturated, p.counts.saturated);
	ck_assert_int_eq(c->call.counts.wrapped, p.counts.wrapped);
	ck_assert_int_eq(c->call.counts.macs, p.counts.macs);
}

/* Formats as networks have them, or any at all. */
static struct form random_form(int round, uint64_t *state)
{
	struct form f = {.t = oracle_between(state, 1, 4),
			 .k = oracle_between(state, 1, 7),
			 .m = oracle_between(state, 1, 5),
			 .rules = round % 2 ? MLI1_1 : MLI2_0,
			 .act = (int)oracle_between(state, 1, 3),
			 .lut = (int)oracle_between(state, 0, 2),
			 .last = oracle_random(state) % 2,
			 .has_bias = oracle_random(state) % 4 > 0};
	f.backward = f.rules == MLI2_0 && oracle_random(state) % 2;
	f.types = calls_fxn[f.rules == MLI2_0 ? 1 + oracle_random(state) % 2 : oracle_random(state) % 3];
	int64_t data = f.types.data == NPUMEM_FX8 ? 4 : 11, weights = f.types.weights == NPUMEM_FX8 ? 5 : 13;
	bool any = round % 5 == 4;
	f.in = any ? oracle_between(state, 0, 127) : data + oracle_between(state, 0, 3);
	f.state = any ? oracle_between(state, 0, 127) : data + oracle_between(state, 0, 4);
	f.out = any ? oracle_between(state, 0, 127) : data + oracle_between(state, 0, 5);
	f.cell = any ? oracle_between(state, 0, 127) : data + oracle_between(state, 0, 1);
	f.weights_in = any ? oracle_between(state, 0, 127) : weights + oracle_between(state, 0, 1);
	f.weights_out = any ? oracle_between(state, 0, 127) : weights + oracle_between(state, 0, 1);
	f.bias = any ? oracle_between(state, 0, f.in + f.weights_in)
		     : f.in + f.weights_in - oracle_between(state, 0, 8);
	return f;
}

static void sample(struct calls *c, int64_t by, uint64_t *state)
{
	for (unsigned role = IN; role <= CELL_IN; role++)
		if (c->roles[role].n > 0)
			cells_sample(c, role, by, state);
}

START_TEST(random_calls)
{
	uint64_t state = 81;
	for (int round = 0; round < 150; round++) {
		struct form f = random_form(round, &state);
		struct calls c;
		set_up(&c, &f);
		c.call.rounding = (enum npumem_rounding)(round % 3 + 1);
		sample(&c, round % 4 ? 1 : 0, &state);
		check_against_rules(&c, &f);
		calls_free(&c);
	}
}
END_TEST

/* The cell as it is meant: real numbers, with a tanh. */
START_TEST(near_the_real_cell)
{
	uint64_t state = 82;
	for (int rules = MLI2_0; rules <= MLI1_1; rules++) {
		struct form f = {.t = 3, .k = 6, .m = 4, .rules = rules, .act = CELLS_TANH, .has_bias = true};
		f.types = calls_fxn[1];
		f.in = f.state = f.out = 15;
		f.weights_in = f.weights_out = 14;
		f.bias = 20;
		f.cell = 12;
		struct calls c;
		set_up(&c, &f);
		sample(&c, 1, &state);
		calls_run(&c);
		double h[4], cell[4], unit = 32768;
		for (int j = 0; j < 4; j++) {
			h[j] = (double)calls_get(&c, PREV_OUT, j) / unit;
			cell[j] = (double)calls_get(&c, CELL_IN, j) / 4096;
		}
		for (int t = 0; t < 3; t++) {
			double gates[16];
			for (int row = 0; row < 16; row++) {
				double sum = (double)calls_get(&c, BIAS, row) / 1048576;
				for (int k = 0; k < 6; k++)
					sum += (double)calls_get(&c, IN, t * 6 + k) / unit *
					       (double)calls_get(&c, rules == MLI2_0 ? WEIGHTS_IN : WEIGHTS,
								 row * (rules == MLI2_0 ? 6 : 10) + k) /
					       16384;
				for (int k = 0; k < 4; k++)
					sum += h[k] *
					       (double)calls_get(&c, rules == MLI2_0 ? WEIGHTS_OUT : WEIGHTS,
								 rules == MLI2_0 ? row * 4 + k
										 : row * 10 + 6 + k) /
					       16384;
				gates[row] = row / 4 == 1 ? tanh(sum) : 1 / (1 + exp(-sum));
			}
			for (int j = 0; j < 4; j++) {
				cell[j] = cell[j] * gates[8 + j] + gates[j] * gates[4 + j];
				h[j] = tanh(cell[j]) * gates[12 + j];
				ck_assert_double_eq_tol((double)calls_get(&c, OUT, t * 4 + j) / unit, h[j], 0.003);
			}
		}
		calls_free(&c);
	}
}
END_TEST

static const struct form good = {.t = 3,
				 .k = 5,
				 .m = 4,
				 .rules = MLI2_0,
				 .act = CELLS_TANH,
				 .has_bias = true,
				 .types = {NPUMEM_FX16, NPUMEM_FX8},
				 .in = 12,
				 .weights_in = 6,
				 .weights_out = 5,
				 .bias = 18,
				 .state = 14,
				 .cell = 11,
				 .out = 15};

/* One wrong extent each: the message names role, dimension, value and what it must be. */
START_TEST(wrong_shapes)
{
	static const struct {
		unsigned role, dimension;
		int64_t value;
		const char *text;
	} rows[] = {
		{IN, 2, 2, "in has H 2, but a sequence has 1"},
		{IN, 3, 2, "in has W 2, but a sequence has 1"},
		{PREV_OUT, 0, 2, "prev_out has N 2, but a state has 1"},
		{PREV_OUT, 2, 2, "prev_out has H 2, but a state has 1"},
		{PREV_OUT, 3, 2, "prev_out has W 2, but a state has 1"},
		{PREV_OUT, 1, 5, "weights_in has C 4, but the gates, prev_out and in need 5"},
		{WEIGHTS_IN, 0, 3, "weights_in has N 3, but the gates, prev_out and in need 4"},
		{WEIGHTS_IN, 2, 3, "weights_in has H 3, but the gates, prev_out and in need 1"},
		{WEIGHTS_IN, 3, 6, "weights_in has W 6, but the gates, prev_out and in need 5"},
		{WEIGHTS_OUT, 0, 5, "weights_out has N 5, but the gates and prev_out need 4"},
		{WEIGHTS_OUT, 1, 5, "weights_out has C 5, but the gates and prev_out need 4"},
		{WEIGHTS_OUT, 2, 5, "weights_out has H 5, but the gates and prev_out need 1"},
		{WEIGHTS_OUT, 3, 5, "weights_out has W 5, but the gates and prev_out need 4"},
		{BIAS, 0, 1, "bias has N 1, but the gates and prev_out need 4"},
		{BIAS, 1, 1, "bias has C 1, but the gates and prev_out need 4"},
		{BIAS, 2, 2, "bias has H 2, but the gates and prev_out need 1"},
		{BIAS, 3, 2, "bias has W 2, but the gates and prev_out need 1"},
		{CELL_IN, 1, 3, "cell_in has C 3, but prev_out has 4"},
		{CELL_IN, 0, 3, "cell_in has N 3, but prev_out has 1"},
		{CELL_OUT, 1, 3, "cell_out has C 3, but cell_in has 4"},
		{CELL_OUT, 3, 3, "cell_out has W 3, but cell_in has 1"},
		{OUT, 0, 1, "out has N 1, but in, prev_out and results give 3"},
		{OUT, 1, 1, "out has C 1, but in, prev_out and results give 4"},
		{OUT, 2, 2, "out has H 2, but in, prev_out and results give 1"},
		{OUT, 3, 2, "out has W 2, but in, prev_out and results give 1"},
		{IN, 1, (INT64_C(1) << 32) + 1, "an output would sum 4294967297 products, more than 4294967296"},
		{PREV_OUT, 1, (INT64_C(1) << 32) + 1,
		 "an output would sum 4294967297 products, more than 4294967296"},
	};
	struct calls c;
	set_up(&c, &good);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct npumem_dims *s = &c.operands[rows[i].role][0].shape, kept = *s;
		int64_t *extents[] = {&s->n, &s->c, &s->h, &s->w};
		*extents[rows[i].dimension] = rows[i].value;
		calls_refused(&c, rows[i].text);
		*s = kept;
	}
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_free(&c);
}
END_TEST

START_TEST(wrong_types_and_formats)
{
	static const struct {
		unsigned role;
		int dtype;
		const char *text;
	} rows[] = {
		{IN, NPUMEM_INT16, "in is int16, but must be fx8 or fx16"},
		{PREV_OUT, NPUMEM_FX8, "prev_out is fx8, but must be fx16 as in is"},
		{WEIGHTS_IN, NPUMEM_FP32, "weights_in is fp32, but must be fx16 or fx8 with fx16 in"},
		{WEIGHTS_OUT, NPUMEM_FX16, "weights_out is fx16, but must be fx8 as weights_in is"},
		{BIAS, NPUMEM_FX16, "bias is fx16, but must be fx8 as weights_in is"},
		{CELL_IN, NPUMEM_FX8, "cell_in is fx8, but must be fx16 as in is"},
		{CELL_OUT, NPUMEM_FX8, "cell_out is fx8, but must be fx16 as cell_in is"},
		{OUT, NPUMEM_FX8, "out is fx8, but must be fx16 as in is"},
	};
	struct calls c;
	set_up(&c, &good);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int kept = c.operands[rows[i].role][0].dtype;
		c.operands[rows[i].role][0].dtype = rows[i].dtype;
		calls_refused(&c, rows[i].text);
		c.operands[rows[i].role][0].dtype = kept;
	}
	c.operands[BIAS][0].frac_bits = 19;
	calls_refused(&c, "bias has 19 frac_bits, more than the 18 of in (12) and weights_in (6)");
	c.operands[BIAS][0].frac_bits = 18;
	c.operands[CELL_OUT][0].frac_bits = 12;
	calls_refused(&c, "cell_out has 12 frac_bits, but must have the 11 of cell_in");
	calls_free(&c);
	struct form narrow = good;
	narrow.types = calls_fxn[0];
	set_up(&c, &narrow);
	calls_refused(&c, "lstm_cell: in is fx8, but must be fx16: mli2_0 has no rule for fx8 gates");
	calls_free(&c);
	narrow.rules = MLI1_1;
	set_up(&c, &narrow);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[WEIGHTS][0].shape.w = 5;
	calls_refused(&c, "weights has W 5, but the gates, prev_out and in need 9");
	calls_free(&c);
}
END_TEST

START_TEST(wrong_parameters)
{
	struct form old = good;
	struct calls c;
	set_up(&c, &good);
	ck_assert(c.kernel->in_place);
	calls_param(&c, NPUMEM_PARAM_RULES, 1, MLI1_1, 0, 0, 0);
	calls_refused(&c, "lstm_cell: rules=mli1_1 takes weights, not weights_in and weights_out");
	calls_param(&c, NPUMEM_PARAM_RULES, 1, MLI2_0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_MODE, 1, 1, 0, 0, 0);
	calls_refused(&c, "lstm_cell: mode is given, but rules=mli2_0 takes direction and results");
	calls_param(&c, NPUMEM_PARAM_MODE, 0, 0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_ACT, 1, 4, 0, 0, 0);
	calls_refused(&c, "lstm_cell: act is number 4, but its choices are 1 to 3: none tanh sigm");
	calls_param(&c, NPUMEM_PARAM_ACT, 0, 0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_RESULTS, 1, 2, 0, 0, 0);
	calls_refused(&c, "lstm_cell: out has N 3, but in, prev_out and results give 1");
	calls_param(&c, NPUMEM_PARAM_RESULTS, 0, 0, 0, 0, 0);
	c.roles[WEIGHTS_OUT].n = 0;
	calls_refused(&c, "lstm_cell: rules=mli2_0 takes weights_in and weights_out, not weights");
	c.roles[WEIGHTS_OUT].n = 1;
	calls_free(&c);
	old.rules = MLI1_1;
	set_up(&c, &old);
	calls_param(&c, NPUMEM_PARAM_DIRECTION, 1, 1, 0, 0, 0);
	calls_refused(&c, "lstm_cell: direction is given, but rules=mli1_1 takes mode");
	calls_param(&c, NPUMEM_PARAM_DIRECTION, 0, 0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_RESULTS, 1, 1, 0, 0, 0);
	calls_refused(&c, "lstm_cell: results is given, but rules=mli1_1 takes mode");
	calls_param(&c, NPUMEM_PARAM_RESULTS, 0, 0, 0, 0, 0);
	calls_param(&c, NPUMEM_PARAM_MODE, 1, 3, 0, 0, 0);
	calls_refused(&c, "lstm_cell: in has N 3, but mode=one_to_one takes 1");
	calls_free(&c);
}
END_TEST

Suite *suite_lstm_cell(void)
{
	Suite *suite = suite_create("device/kernels/lstm_cell");
	TCase *tcase = tcase_create("lstm_cell");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, near_the_real_cell);
	tcase_add_test(tcase, wrong_shapes);
	tcase_add_test(tcase, wrong_types_and_formats);
	tcase_add_test(tcase, wrong_parameters);
	suite_add_tcase(suite, tcase);
	return suite;
}
