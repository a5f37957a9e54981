/* basic_rnn_cell against the 1.1 rules written out, with and without an activation; refusals. */
#include "tests/unit/daemon/device/kernels/cells.h"

enum { IN, PREV_OUT, WEIGHTS, BIAS, OUT };
enum { BATCH_TO_BATCH = 1, BATCH_TO_LAST, ONE_TO_ONE };

struct form {
	int64_t t, k, m, gates; /* gates 0: one */
	int mode, act, lut;	/* 0: not given */
	bool has_bias;
	struct calls_types types;
	int64_t in, weights, bias, state, out; /* frac_bits */
};

static void set_up(struct calls *c, const struct form *f)
{
	calls_init(c, NPUMEM_KERNEL_BASIC_RNN_CELL);
	calls_add(c, "in", f->types.data, f->in, f->t, f->k, 1, 1);
	calls_add(c, "prev_out", f->types.data, f->state, 1, f->m, 1, 1);
	int64_t gates = f->gates ? f->gates : 1;
	calls_add(c, "weights", f->types.weights, f->weights, gates, f->m, 1, f->k + f->m);
	if (f->has_bias)
		calls_add(c, "bias", f->types.weights, f->bias, gates, f->m, 1, 1);
	calls_add(c, "out", f->types.data, f->out, f->mode <= BATCH_TO_BATCH ? f->t : gates, f->m, 1, 1);
	calls_param(c, NPUMEM_PARAM_MODE, f->mode > 0, f->mode, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_ACT, f->act > 0, f->act, 0, 0, 0);
	calls_param(c, NPUMEM_PARAM_LUT, f->lut > 0, f->lut, 0, 0, 0);
}

static void check_against_rules(struct calls *c, const struct form *f)
{
	calls_run(c);
	unsigned bytes = npumem_dtype_bytes(f->types.data);
	bool plain = f->act <= CELLS_NONE;
	struct tables t = tables_of(f->act == CELLS_SIGM ? TABLES_SIGMOID : TABLES_TANH, f->lut ? f->lut : 2);
	int64_t gate = plain ? f->out : bytes == 1 ? 4 : 12, h_frac_bits = f->state;
	int64_t x[CELLS_STATE_MAX], h[CELLS_STATE_MAX], next[CELLS_STATE_MAX], width = f->k + f->m;
	/* Gates are rows like any others. */
	int64_t rows = f->m * (f->gates ? f->gates : 1);
	ck_assert_int_le(rows, CELLS_STATE_MAX);
	struct cells_counts want = {0, 0, 0};
	for (int64_t j = 0; j < f->m; j++)
		h[j] = calls_get(c, PREV_OUT, j);
	for (int64_t step = 0; step < f->t; step++) {
		for (int64_t k = 0; k < f->k; k++)
			x[k] = calls_get(c, IN, step * f->k + k);
		for (int64_t j = 0; j < rows; j++) {
			int64_t clamped = 0, bias = f->has_bias ? calls_get(c, BIAS, j) : 0;
			int64_t sum = cells_carried(cells_dot(c, WEIGHTS, j, width, 0, x, f->k),
						    cells_dot(c, WEIGHTS, j, width, f->k, h, f->m), bias,
						    f->has_bias ? f->in + f->weights - f->bias : 0,
						    f->in - h_frac_bits, h_frac_bits + f->weights - gate, bytes,
						    (int)c->call.rounding, &clamped, &want.wrapped);
			want.macs += width;
			want.saturated += plain ? clamped : 0;
			next[j] = plain ? sum
					: tables_result(&t, sum, gate, bytes, (int)c->call.rounding,
							&want.saturated);
		}
		memcpy(h, next, sizeof(h));
		h_frac_bits = f->out;
		bool all = f->mode <= BATCH_TO_BATCH;
		for (int64_t j = 0; j < rows && (all || step == f->t - 1); j++)
			ck_assert_int_eq(calls_get(c, OUT, (all ? step : 0) * f->m + j), h[j]);
	}
	ck_assert_int_eq(c->call.counts.saturated, want.saturated);
	ck_assert_int_eq(c->call.counts.wrapped, want.wrapped);
	ck_assert_int_eq(c->call.counts.macs, want.macs);
}

START_TEST(random_calls)
{
	uint64_t state = 101;
	for (int round = 0; round < 240; round++) {
		struct form f = {.k = oracle_between(&state, 1, 7),
				 .m = oracle_between(&state, 1, 6),
				 .mode = (int)oracle_between(&state, 0, 3),
				 .act = (int)oracle_between(&state, 0, 3),
				 .lut = (int)oracle_between(&state, 0, 2),
				 .has_bias = oracle_random(&state) % 4 > 0,
				 .types = calls_fxn[oracle_random(&state) % 3]};
		bool any = round % 5 == 4;
		int64_t data = f.types.data == NPUMEM_FX8 ? 7 : 15,
			weights = f.types.weights == NPUMEM_FX8 ? 7 : 15;
		f.t = f.mode == ONE_TO_ONE ? 1 : oracle_between(&state, 1, 4);
		f.gates = f.mode == ONE_TO_ONE ? oracle_between(&state, 1, CELLS_STATE_MAX / f.m) : 1;
		f.in = any ? oracle_between(&state, 0, 127) : data - oracle_between(&state, -2, 3);
		f.weights = any ? oracle_between(&state, 0, 127) : weights - oracle_between(&state, 0, 3);
		f.bias = any ? oracle_between(&state, 0, f.in + f.weights)
			     : f.in + f.weights - oracle_between(&state, 0, 7);
		f.state = any ? oracle_between(&state, 0, 127) : data - oracle_between(&state, 0, 3);
		f.out = f.act > CELLS_NONE ? data
			: any		   ? oracle_between(&state, 0, 127)
					   : data - oracle_between(&state, 0, 3);
		struct calls c;
		set_up(&c, &f);
		c.call.rounding = (enum npumem_rounding)(round % 3 + 1);
		for (unsigned role = IN; role <= BIAS; role++)
			if (c.roles[role].n > 0)
				cells_sample(&c, role, round % 4 ? 1 : 0, &state);
		check_against_rules(&c, &f);
		calls_free(&c);
	}
}
END_TEST

/* A bit that falls off between the sums: dropped by the accumulator of 40 bits, rounded up by the one of 32. */
START_TEST(the_shift_between_the_sums)
{
	for (unsigned types = 0; types < 3; types++) {
		struct form f = {.t = 1, .k = 1, .m = 1, .types = calls_fxn[types], .in = 1};
		struct calls c;
		set_up(&c, &f);
		c.call.rounding = NPUMEM_UP;
		calls_put(&c, IN, 0, 3); /* 1.5 */
		calls_put(&c, WEIGHTS, 0, 1);
		calls_run(&c);
		ck_assert_int_eq(calls_get(&c, OUT, 0), types == 0 ? 2 : 1);
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		unsigned role, dimension;
		int64_t value;
		const char *text;
	} rows[] = {
		{IN, 3, 2, "basic_rnn_cell: in has W 2, but a sequence has 1"},
		{PREV_OUT, 3, 2, "prev_out has W 2, but a state has 1"},
		{WEIGHTS, 0, 2, "weights has N 2, but the gates, prev_out and in need 1"},
		{WEIGHTS, 1, 2, "weights has C 2, but the gates, prev_out and in need 4"},
		{WEIGHTS, 2, 2, "weights has H 2, but the gates, prev_out and in need 1"},
		{WEIGHTS, 3, 5, "weights has W 5, but the gates, prev_out and in need 9"},
		{BIAS, 1, 5, "bias has C 5, but the gates and prev_out need 4"},
		{OUT, 0, 1, "out has N 1, but in, prev_out and mode give 3"},
		{OUT, 3, 9, "out has W 9, but in, prev_out and mode give 1"},
	};
	const struct form good = {.t = 3,
				  .k = 5,
				  .m = 4,
				  .act = CELLS_TANH,
				  .has_bias = true,
				  .types = {NPUMEM_FX8, NPUMEM_FX8},
				  .in = 6,
				  .weights = 6,
				  .bias = 12,
				  .state = 7,
				  .out = 7};
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
	c.operands[OUT][0].frac_bits = 6;
	calls_refused(&c, "basic_rnn_cell: out has 6 frac_bits, but must have the 7 of fx8 results in [-1, 1)");
	calls_param(&c, NPUMEM_PARAM_ACT, 0, 0, 0, 0, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[BIAS][0].frac_bits = 13;
	calls_refused(&c, "basic_rnn_cell: bias has 13 frac_bits, more than the 12 of in (6) and weights (6)");
	c.operands[BIAS][0].frac_bits = 12;
	c.operands[WEIGHTS][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "basic_rnn_cell: weights is fx16, but must be fx8 with fx8 in");
	c.operands[WEIGHTS][0].dtype = NPUMEM_FX8;
	calls_param(&c, NPUMEM_PARAM_MODE, 1, ONE_TO_ONE, 0, 0, 0);
	calls_refused(&c, "basic_rnn_cell: in has N 3, but mode=one_to_one takes 1");
	c.operands[IN][0].shape.n = 1;
	c.operands[OUT][0].shape.n = 1;
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[WEIGHTS][0].shape.n = 4;
	calls_refused(&c, "basic_rnn_cell: bias has N 1, but the gates and prev_out need 4");
	c.operands[BIAS][0].shape.n = 4;
	calls_refused(&c, "basic_rnn_cell: out has N 1, but the gates, prev_out and mode give 4");
	c.operands[OUT][0].shape.n = 4;
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[OUT][0].shape.c = 16;
	calls_refused(&c, "basic_rnn_cell: out has C 16, but the gates, prev_out and mode give 4");
	c.operands[OUT][0].shape.c = 4;
	calls_param(&c, NPUMEM_PARAM_MODE, 0, 0, 0, 0, 0);
	calls_refused(&c, "basic_rnn_cell: weights has N 4, but the gates, prev_out and in need 1");
	calls_param(&c, NPUMEM_PARAM_MODE, 1, 4, 0, 0, 0);
	calls_refused(&c, "basic_rnn_cell: mode is number 4, but its choices are 1 to 3");
	calls_free(&c);
}
END_TEST

Suite *suite_basic_rnn_cell(void)
{
	Suite *suite = suite_create("device/kernels/basic_rnn_cell");
	TCase *tcase = tcase_create("basic_rnn_cell");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, the_shift_between_the_sums);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
