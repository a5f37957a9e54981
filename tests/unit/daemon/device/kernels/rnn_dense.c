/* rnn_dense against plain loops, its partial sums rounded one by one, and its refusals. */
#include "tests/unit/daemon/device/kernels/cells.h"

enum { IN, WEIGHTS, BIAS, OUT };

struct shape {
	int64_t n, m;
	unsigned inputs;
	int64_t k[CALLS_FAMILY_MAX];
};

static void set_up(struct calls *c, const struct shape *s, const struct calls_types *types, const int64_t *in,
		   const int64_t *weights, int64_t bias, int64_t out)
{
	calls_init(c, NPUMEM_KERNEL_RNN_DENSE);
	for (unsigned i = 0; i < s->inputs; i++) {
		calls_add(c, "in", types->data, in[i], s->n, s->k[i], 1, 1);
		calls_add(c, "weights", types->weights, weights[i], s->k[i], s->m, 1, 1);
	}
	if (bias >= 0)
		calls_add(c, "bias", types->weights, bias, 1, s->m, 1, 1);
	calls_add(c, "out", types->data, out, s->n, s->m, 1, 1);
}

/* Element i of any member of a family. */
static int64_t member_get(const struct calls *c, unsigned role, unsigned member, int64_t i)
{
	const struct kernel_operand *operand = &c->operands[role][member];
	return operand->dtype == NPUMEM_FX8 ? ((int8_t *)operand->data)[i] : ((int16_t *)operand->data)[i];
}

static void sample_members(struct calls *c, uint64_t *state)
{
	for (unsigned role = IN; role <= BIAS; role++)
		for (unsigned k = 0; k < c->roles[role].n; k++) {
			struct kernel_operand *operand = &c->operands[role][k];
			unsigned bytes = npumem_dtype_bytes(operand->dtype);
			int64_t n = (int64_t)(calls_bytes(operand) / bytes), end = bytes == 1 ? 128 : 32768;
			for (int64_t i = 0; i < n; i++) {
				int64_t value = oracle_sample(state, -end, end - 1);
				if (bytes == 1)
					((int8_t *)operand->data)[i] = (int8_t)value;
				else
					((int16_t *)operand->data)[i] = (int16_t)value;
			}
		}
}

static void check_against_loops(struct calls *c, const struct shape *s)
{
	calls_run(c);
	struct cells_counts want = {0, 0, 0};
	bool has_bias = c->roles[BIAS].n > 0;
	unsigned bytes = npumem_dtype_bytes(c->operands[OUT][0].dtype);
	for (int64_t n = 0; n < s->n; n++)
		for (int64_t m = 0; m < s->m; m++) {
			struct cells_sum sums[CALLS_FAMILY_MAX];
			for (unsigned i = 0; i < s->inputs; i++) {
				sums[i] = (struct cells_sum){0, c->operands[IN][i].frac_bits +
									c->operands[WEIGHTS][i].frac_bits};
				for (int64_t k = 0; k < s->k[i]; k++) {
					sums[i].value += member_get(c, IN, i, n * s->k[i] + k) *
							 member_get(c, WEIGHTS, i, k * s->m + m);
					want.macs++;
				}
			}
			int64_t y = cells_partial(sums, s->inputs, has_bias ? calls_get(c, BIAS, m) : 0,
						  has_bias ? cells_frac_bits(c, BIAS) : sums[0].frac_bits,
						  cells_frac_bits(c, OUT), bytes, (int)c->call.rounding,
						  &want.saturated, &want.wrapped);
			ck_assert_int_eq(calls_get(c, OUT, n * s->m + m), y);
		}
	ck_assert_int_eq(c->call.counts.saturated, want.saturated);
	ck_assert_int_eq(c->call.counts.wrapped, want.wrapped);
	ck_assert_int_eq(c->call.counts.macs, want.macs);
}

START_TEST(random_calls)
{
	static const struct shape shapes[] = {{1, 1, 1, {1}},
					      {1, 5, 2, {3, 7}},
					      {3, 4, 3, {2, 1, 5}},
					      {1, 1030, 2, {2, 1}},
					      {2, 3, 6, {1, 2, 3, 4, 5, 6}}};
	uint64_t state = 71;
	for (unsigned s = 0; s < 5; s++)
		for (unsigned t = 0; t < 3; t++)
			for (int mode = 1; mode <= 3; mode++) {
				int64_t in[CALLS_FAMILY_MAX], weights[CALLS_FAMILY_MAX];
				int64_t most = (s + t) % 4 == 3 ? 127 : 14;
				for (unsigned i = 0; i < CALLS_FAMILY_MAX; i++) {
					in[i] = oracle_between(&state, 0, most);
					weights[i] = oracle_between(&state, 0, most);
				}
				struct calls c;
				set_up(&c, &shapes[s], &calls_fxn[t], in, weights,
				       mode == 2 ? -1 : oracle_between(&state, 0, in[0] + weights[0]),
				       oracle_between(&state, 0, most));
				c.call.rounding = (enum npumem_rounding)mode;
				sample_members(&c, &state);
				check_against_loops(&c, &shapes[s]);
				calls_free(&c);
			}
}
END_TEST

/* 0.5 + 0.5 in two sums: rounded by themselves, up, that is 2; in one sum it would be 1. */
START_TEST(each_sum_is_rounded_by_itself)
{
	const struct shape s = {1, 1, 2, {1, 1}};
	const int64_t none[] = {0, 0}, half[] = {1, 1};
	struct calls c;
	set_up(&c, &s, &calls_fxn[0], half, none, -1, 0);
	for (unsigned i = 0; i < 2; i++) {
		((int8_t *)c.operands[IN][i].data)[0] = 1;
		((int8_t *)c.operands[WEIGHTS][i].data)[0] = 1;
	}
	c.call.rounding = NPUMEM_UP;
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, OUT, 0), 2);
	c.call.rounding = NPUMEM_CONVERGENT;
	calls_run(&c);
	ck_assert_int_eq(calls_get(&c, OUT, 0), 0);
	calls_free(&c);
}
END_TEST

START_TEST(the_last_safe_product)
{
	for (int64_t k = 511; k <= 512; k++) {
		const struct shape s = {1, 2, 2, {k, 1}};
		const int64_t none[] = {0, 0};
		struct calls c;
		set_up(&c, &s, &calls_fxn[1], none, none, -1, 0);
		for (int64_t i = 0; i < k; i++)
			calls_put(&c, IN, i, -32768);
		for (int64_t i = 0; i < 2 * k; i++)
			calls_put(&c, WEIGHTS, i, -32768);
		check_against_loops(&c, &s);
		ck_assert_int_eq(c.call.counts.wrapped, k == 512 ? 2 : 0);
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	const struct shape s = {2, 3, 2, {4, 5}};
	const int64_t frac_bits[] = {7, 6};
	struct calls c;
	set_up(&c, &s, &calls_fxn[2], frac_bits, frac_bits, 14, 7);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[BIAS][0].frac_bits = 15;
	calls_refused(&c, "rnn_dense: bias has 15 frac_bits, more than the 14 of in0 (7) and weights0 (7)");
	c.operands[BIAS][0].frac_bits = 14;
	c.operands[IN][1].dtype = NPUMEM_FX8;
	calls_refused(&c, "rnn_dense: out is fx16, but must be fx8 as in1 is");
	c.operands[IN][1].dtype = NPUMEM_INT16;
	calls_refused(&c, "rnn_dense: in1 is int16, but must be fx8 or fx16");
	c.operands[IN][1].dtype = NPUMEM_FX16;
	c.operands[WEIGHTS][1].dtype = NPUMEM_FX16;
	calls_refused(&c, "rnn_dense: weights1 is fx16, but must be fx8 as weights0 is");
	c.operands[WEIGHTS][1].dtype = NPUMEM_FX8;
	c.operands[BIAS][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "rnn_dense: bias is fx16, but must be fx8 as weights0 is");
	c.operands[BIAS][0].dtype = NPUMEM_FX8;
	c.operands[IN][1].shape.n = 1;
	calls_refused(&c, "rnn_dense: in1 has N 1, but out needs 2");
	c.operands[IN][1].shape.n = 2;
	c.operands[IN][0].shape.h = 2;
	calls_refused(&c, "rnn_dense: in0 has H 2, but out needs 1");
	c.operands[IN][0].shape.h = 1;
	c.operands[WEIGHTS][1].shape.n = 4;
	calls_refused(&c, "rnn_dense: weights1 has N 4, but its input and out need 5");
	c.operands[WEIGHTS][1].shape.n = 5;
	c.operands[WEIGHTS][0].shape.c = 4;
	calls_refused(&c, "rnn_dense: weights0 has C 4, but its input and out need 3");
	c.operands[WEIGHTS][0].shape.c = 3;
	c.operands[BIAS][0].shape.n = 2;
	calls_refused(&c, "rnn_dense: bias has N 2, but out needs 1");
	c.operands[BIAS][0].shape.n = 1;
	c.operands[OUT][0].shape.w = 2;
	calls_refused(&c, "rnn_dense: out has W 2, but must have 1");
	c.operands[OUT][0].shape.w = 1;
	c.roles[WEIGHTS].n = 1;
	calls_refused(&c, "rnn_dense: there are 2 in, but 1 weights");
	c.roles[WEIGHTS].n = 2;
	c.operands[IN][1].shape.c = c.operands[WEIGHTS][1].shape.n = (INT64_C(1) << 32) + 1;
	calls_refused(&c, "rnn_dense: an output would sum 4294967297 products, more than 4294967296");
	c.operands[IN][1].shape.c = c.operands[WEIGHTS][1].shape.n = 5;
	c.call.rounding = (enum npumem_rounding)4;
	calls_refused(&c, "rnn_dense: there is no rounding mode 4");
	calls_free(&c);
}
END_TEST

Suite *suite_rnn_dense(void)
{
	Suite *suite = suite_create("device/kernels/rnn_dense");
	TCase *tcase = tcase_create("rnn_dense");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, each_sum_is_rounded_by_itself);
	tcase_add_test(tcase, the_last_safe_product);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
