/* gru_cell against its rules written out, step by step; the cell in floating point; refusals. */
#include "tests/unit/daemon/device/kernels/cells.h"

enum { IN, PREV_OUT, WEIGHTS_IN, WEIGHTS_OUT, BIAS, OUT };

struct form {
	int64_t t, k, m;
	int lut; /* 0: not given */
	bool backward, last, has_bias;
	struct calls_types types;
	int64_t in, weights_in, weights_out, bias, state, out; /* frac_bits */
};

static void set_up(struct calls *c, const struct form *f)
{
	calls_init(c, NPUMEM_KERNEL_GRU_CELL);
	calls_add(c, "in", f->types.data, f->in, f->t, f->k, 1, 1);
	calls_add(c, "prev_out", f->types.data, f->state, 1, f->m, 1, 1);
	calls_add(c, "weights_in", f->types.weights, f->weights_in, 3, f->m, 1, f->k);
	calls_add(c, "weights_out", f->types.weights, f->weights_out, 3, f->m, 1, f->m);
	if (f->has_bias)
		calls_add(c, "bias", f->types.weights, f->bias, 3, f->m, 1, 1);
	calls_add(c, "out", f->types.data, f->out, f->last ? 1 : f->t, f->m, 1, 1);
	calls_param(c, NPUMEM_PARAM_DIRECTION, f->backward, 2, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_RESULTS, f->last, 2, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_LUT, f->lut > 0, f->lut, 0, 0, 0);
}

struct model {
	const struct calls *c;
	const struct form *f;
	int mode;
	struct tables sigmoid, tanh;
	int64_t x[CELLS_STATE_MAX], h[CELLS_STATE_MAX];
	int64_t h_frac_bits, gate_frac_bits;
	struct cells_counts counts;
};

static int64_t gate_of(struct model *p, int64_t row, const int64_t *h)
{
	const struct form *f = p->f;
	int64_t ignored = 0, first = f->in + f->weights_in;
	const struct cells_sum sums[] = {
		{cells_dot(p->c, WEIGHTS_IN, row, f->k, 0, p->x, f->k), first},
		{cells_dot(p->c, WEIGHTS_OUT, row, f->m, 0, h, f->m), p->h_frac_bits + f->weights_out}};
	p->counts.macs += f->k + f->m;
	int64_t sum =
		cells_partial(sums, 2, f->has_bias ? calls_get(p->c, BIAS, row) : 0, f->has_bias ? f->bias : first,
			      p->gate_frac_bits, 2, p->mode, &ignored, &p->counts.wrapped);
	return tables_read(row / f->m == 2 ? &p->tanh : &p->sigmoid, sum, p->gate_frac_bits, p->mode);
}

static void step_of(struct model *p)
{
	int64_t m = p->f->m, z[CELLS_STATE_MAX], reset[CELLS_STATE_MAX], fresh[CELLS_STATE_MAX], ignored = 0;
	for (int64_t j = 0; j < m; j++) {
		z[j] = gate_of(p, j, p->h);
		reset[j] = cells_product(gate_of(p, m + j, p->h), p->h[j], 15, 2, p->mode, &ignored);
	}
	for (int64_t j = 0; j < m; j++)
		fresh[j] = gate_of(p, 2 * m + j, reset);
	for (int64_t j = 0; j < m; j++) {
		int64_t clamped = 0, keep = cells_product(p->h[j], z[j], 15, 2, p->mode, &clamped);
		int64_t part = cells_product(fresh[j], 32767 - z[j], 30 - p->f->out, 2, p->mode, &clamped);
		p->h[j] = cells_add(part, p->f->out, keep, p->h_frac_bits, p->f->out, 2, p->mode, &clamped);
		p->counts.saturated += clamped > 0;
	}
	p->h_frac_bits = p->f->out;
}

static void check_against_rules(struct calls *c, const struct form *f)
{
	calls_run(c);
	struct model p = {.c = c,
			  .f = f,
			  .mode = (int)c->call.rounding,
			  .sigmoid = tables_of(TABLES_SIGMOID, f->lut ? f->lut : 1),
			  .tanh = tables_of(TABLES_TANH, f->lut ? f->lut : 1),
			  .h_frac_bits = f->state,
			  .gate_frac_bits = cells_least(11, f->in + f->weights_in)};
	for (int64_t j = 0; j < f->m; j++)
		p.h[j] = calls_get(c, PREV_OUT, j);
	for (int64_t t = 0; t < f->t; t++) {
		for (int64_t k = 0; k < f->k; k++)
			p.x[k] = calls_get(c, IN, (f->backward ? f->t - 1 - t : t) * f->k + k);
		step_of(&p);
		for (int64_t j = 0; j < f->m && (!f->last || t == f->t - 1); j++)
			ck_assert_int_eq(calls_get(c, OUT, (f->last ? 0 : t) * f->m + j), p.h[j]);
	}
	ck_assert_int_eq(c->call.counts.saturated, p.counts.saturated);
	ck_assert_int_eq(c->call.counts.wrapped, p.counts.wrapped);
	ck_assert_int_eq(c->call.counts.macs, p.counts.macs);
}

static struct form random_form(int round, uint64_t *state)
{
	struct form f = {.t = oracle_between(state, 1, 4),
			 .k = oracle_between(state, 1, 7),
			 .m = oracle_between(state, 1, 5),
			 .lut = (int)oracle_between(state, 0, 2),
			 .backward = oracle_random(state) % 2,
			 .last = oracle_random(state) % 2,
			 .has_bias = oracle_random(state) % 4 > 0};
	f.types = calls_fxn[1 + oracle_random(state) % 2];
	int64_t weights = f.types.weights == NPUMEM_FX8 ? 5 : 13;
	bool any = round % 5 == 4;
	f.in = any ? oracle_between(state, 0, 127) : oracle_between(state, 10, 15);
	f.state = any ? oracle_between(state, 0, 127) : oracle_between(state, 13, 16);
	f.out = any ? oracle_between(state, 0, 127) : oracle_between(state, 13, 16);
	f.weights_in = any ? oracle_between(state, 0, 127) : weights + oracle_between(state, 0, 1);
	f.weights_out = any ? oracle_between(state, 0, 127) : weights + oracle_between(state, 0, 1);
	f.bias = any ? oracle_between(state, 0, f.in + f.weights_in)
		     : f.in + f.weights_in - oracle_between(state, 0, 8);
	return f;
}

static void sample(struct calls *c, int64_t by, uint64_t *state)
{
	for (unsigned role = IN; role <= BIAS; role++)
		if (c->roles[role].n > 0)
			cells_sample(c, role, by, state);
}

START_TEST(random_calls)
{
	uint64_t state = 91;
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

static const struct form good = {.t = 3,
				 .k = 5,
				 .m = 4,
				 .has_bias = true,
				 .types = {NPUMEM_FX16, NPUMEM_FX16},
				 .in = 15,
				 .weights_in = 14,
				 .weights_out = 14,
				 .bias = 20,
				 .state = 14,
				 .out = 14};

static double real_of(const struct calls *c, unsigned role, int64_t i)
{
	return ldexp((double)calls_get(c, role, i), -(int)cells_frac_bits(c, role));
}

static double real_gate(const struct calls *c, int row, int t, const double *h)
{
	double sum = real_of(c, BIAS, row);
	for (int k = 0; k < 5; k++)
		sum += real_of(c, IN, t * 5 + k) * real_of(c, WEIGHTS_IN, row * 5 + k);
	for (int k = 0; k < 4; k++)
		sum += h[k] * real_of(c, WEIGHTS_OUT, row * 4 + k);
	return row / 4 == 2 ? tanh(sum) : 1 / (1 + exp(-sum));
}

/* The cell as it is meant. */
START_TEST(near_the_real_cell)
{
	uint64_t state = 92;
	struct calls c;
	set_up(&c, &good);
	sample(&c, 1, &state);
	calls_run(&c);
	double h[4];
	for (int j = 0; j < 4; j++)
		h[j] = real_of(&c, PREV_OUT, j);
	for (int t = 0; t < 3; t++) {
		double z[4], reset[4];
		for (int j = 0; j < 4; j++) {
			z[j] = real_gate(&c, j, t, h);
			reset[j] = real_gate(&c, 4 + j, t, h) * h[j];
		}
		for (int j = 0; j < 4; j++)
			h[j] = (1 - z[j]) * real_gate(&c, 8 + j, t, reset) + z[j] * h[j];
		for (int j = 0; j < 4; j++)
			ck_assert_double_eq_tol(real_of(&c, OUT, t * 4 + j), h[j], 0.003);
	}
	calls_free(&c);
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		unsigned role, dimension;
		int64_t value;
		const char *text;
	} rows[] = {
		{IN, 2, 2, "gru_cell: in has H 2, but a sequence has 1"},
		{PREV_OUT, 0, 2, "prev_out has N 2, but a state has 1"},
		{WEIGHTS_IN, 0, 4, "weights_in has N 4, but the gates, prev_out and in need 3"},
		{WEIGHTS_IN, 3, 6, "weights_in has W 6, but the gates, prev_out and in need 5"},
		{WEIGHTS_OUT, 3, 5, "weights_out has W 5, but the gates and prev_out need 4"},
		{BIAS, 0, 4, "bias has N 4, but the gates and prev_out need 3"},
		{OUT, 0, 1, "out has N 1, but in, prev_out and results give 3"},
		{OUT, 1, 1, "out has C 1, but in, prev_out and results give 4"},
	};
	struct calls c;
	set_up(&c, &good);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct npumem_dims *s = &c.operands[rows[i].role][0].shape, kept = *s;
		int64_t *extents[] = {&s->n, &s->c, &s->h, &s->w};
		*extents[rows[i].dimension] = rows[i].value;
		calls_refused(&c, rows[i].text);
		*s = kept;
	}
	c.operands[PREV_OUT][0].dtype = NPUMEM_FX8;
	calls_refused(&c, "gru_cell: prev_out is fx8, but must be fx16 as in is");
	c.operands[PREV_OUT][0].dtype = NPUMEM_FX16;
	c.operands[WEIGHTS_OUT][0].dtype = NPUMEM_FX8;
	calls_refused(&c, "gru_cell: weights_out is fx8, but must be fx16 as weights_in is");
	c.operands[WEIGHTS_OUT][0].dtype = NPUMEM_FX16;
	c.operands[BIAS][0].frac_bits = 30;
	calls_refused(&c, "gru_cell: bias has 30 frac_bits, more than the 29 of in (15) and weights_in (14)");
	c.operands[BIAS][0].frac_bits = 20;
	calls_param(&c, NPUMEM_PARAM_DIRECTION, 1, 3, 0, 0, 0);
	calls_refused(&c, "gru_cell: direction is number 3, but its choices are 1 to 2: forward backward");
	calls_free(&c);
	struct form narrow = good;
	narrow.types = calls_fxn[0];
	set_up(&c, &narrow);
	calls_refused(&c, "gru_cell: in is fx8, but must be fx16: mli2_0 has no rule for fx8 gates");
	calls_free(&c);
}
END_TEST

Suite *suite_gru_cell(void)
{
	Suite *suite = suite_create("device/kernels/gru_cell");
	TCase *tcase = tcase_create("gru_cell");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, near_the_real_cell);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
