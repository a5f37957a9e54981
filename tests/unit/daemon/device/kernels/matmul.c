/* matmul against plain loops, within blocks of columns and past them, at the ends of its accumulators; its
 * refusals. */
#include "tests/unit/daemon/device/kernels/calls.h"

enum { LEFT, RIGHT, BIAS, OUT };

struct shape {
	int64_t rows, terms, columns;
};

static void set_up(struct calls *c, const struct calls_types *types, const struct shape *shape,
		   const int64_t frac_bits[4], bool has_bias)
{
	calls_init(c, NPUMEM_KERNEL_MATMUL);
	calls_add(c, "left", types->data, frac_bits[LEFT], shape->rows, shape->terms, 1, 1);
	calls_add(c, "right", types->weights, frac_bits[RIGHT], shape->terms, shape->columns, 1, 1);
	if (has_bias)
		calls_add(c, "bias", types->weights, frac_bits[BIAS], 1, shape->columns, 1, 1);
	calls_add(c, "out", types->data, frac_bits[OUT], shape->rows, shape->columns, 1, 1);
}

static void check_against_loops(struct calls *c, const struct shape *shape, int64_t relu)
{
	calls_param(c, NPUMEM_PARAM_RELU, relu > 0, relu, 0, 0, 0);
	calls_run(c);
	bool has_bias = c->roles[BIAS].n > 0;
	int64_t acc_frac_bits = c->operands[LEFT][0].frac_bits + c->operands[RIGHT][0].frac_bits;
	int64_t saturated = 0, wrapped = 0;
	for (int64_t r = 0; r < shape->rows; r++)
		for (int64_t m = 0; m < shape->columns; m++) {
			int64_t sum = 0;
			for (int64_t k = 0; k < shape->terms; k++)
				sum += calls_get(c, LEFT, r * shape->terms + k) *
				       calls_get(c, RIGHT, k * shape->columns + m);
			int64_t want = calls_weighted(c, sum, has_bias ? calls_get(c, BIAS, m) : 0, acc_frac_bits,
						      has_bias ? c->operands[BIAS][0].frac_bits : acc_frac_bits,
						      OUT, relu, &saturated, &wrapped);
			ck_assert_int_eq(calls_get(c, OUT, r * shape->columns + m), want);
		}
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, wrapped);
	ck_assert_int_eq(c->call.counts.macs, shape->rows * shape->terms * shape->columns);
	ck_assert_int_eq(c->call.counts.divided_by_zero, 0);
}

START_TEST(random_calls)
{
	static const struct shape shapes[] = {{1, 1, 1}, {3, 5, 7}, {4, 9, 2}, {2, 2, 1025}, {9, 3, 65}};
	uint64_t state = 501;
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (unsigned t = 0; t < 3; t++)
			for (int mode = 1; mode <= 3; mode++) {
				struct calls c;
				int64_t left = oracle_between(&state, 0, 20),
					right = oracle_between(&state, 0, 20);
				const int64_t frac_bits[4] = {left, right, oracle_between(&state, 0, left + right),
							      oracle_between(&state, 0, left + right + 2)};
				set_up(&c, &calls_fxn[t], &shapes[s], frac_bits, mode != 2);
				c.call.rounding = (enum npumem_rounding)mode;
				calls_sample(&c, LEFT, &state);
				calls_sample(&c, RIGHT, &state);
				if (c.roles[BIAS].n > 0)
					calls_sample(&c, BIAS, &state);
				check_against_loops(&c, &shapes[s], (int64_t)oracle_random(&state) % 5);
				calls_free(&c);
			}
}
END_TEST

/* 512 products of all-minimum fx16 operands are 2^39: one more than the accumulator holds. */
START_TEST(wraps)
{
	for (int64_t terms = 511; terms <= 512; terms++) {
		const struct shape shape = {2, terms, 3};
		struct calls c;
		set_up(&c, &calls_fxn[1], &shape, (const int64_t[4]){10, 20, 0, 3}, false);
		for (int64_t i = 0; i < 2 * terms; i++)
			calls_put(&c, LEFT, i, INT16_MIN);
		for (int64_t i = 0; i < 3 * terms; i++)
			calls_put(&c, RIGHT, i, INT16_MIN);
		check_against_loops(&c, &shape, 0);
		ck_assert_int_eq(c.call.counts.wrapped, terms == 512 ? 6 : 0);
		calls_free(&c);
	}
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		unsigned role;
		int dtype;
		struct npumem_dims shape;
		int64_t frac_bits;
		const char *text;
	} rows[] = {
		{LEFT, NPUMEM_INT8, {2, 3, 1, 1}, 7, "matmul: left is int8, but must be fx8 or fx16"},
		{RIGHT, NPUMEM_FX16, {3, 5, 1, 1}, 0, "matmul: right is fx16, but must be fx8 with fx8 left"},
		{BIAS, NPUMEM_FX16, {1, 5, 1, 1}, 7, "matmul: bias is fx16, but must be fx8 as right is"},
		{OUT, NPUMEM_FX16, {2, 5, 1, 1}, 7, "matmul: out is fx16, but must be fx8 as left is"},
		{BIAS,
		 NPUMEM_FX8,
		 {1, 5, 1, 1},
		 8,
		 "bias has 8 frac_bits, more than the 7 of left (7) and right (0)"},
		{LEFT, NPUMEM_FX8, {2, 3, 2, 1}, 7, "matmul: left has H 2, but a matrix has 1"},
		{LEFT, NPUMEM_FX8, {2, 3, 1, 4}, 7, "matmul: left has W 4, but a matrix has 1"},
		{RIGHT, NPUMEM_FX8, {4, 5, 1, 1}, 0, "matmul: right has N 4, but left needs 3"},
		{RIGHT, NPUMEM_FX8, {3, 5, 1, 2}, 0, "matmul: right has W 2, but left needs 1"},
		{BIAS, NPUMEM_FX8, {2, 5, 1, 1}, 7, "matmul: bias has N 2, but right needs 1"},
		{BIAS, NPUMEM_FX8, {1, 4, 1, 1}, 7, "matmul: bias has C 4, but right needs 5"},
		{OUT, NPUMEM_FX8, {3, 5, 1, 1}, 7, "matmul: out has N 3, but left and right give 2"},
		{OUT, NPUMEM_FX8, {2, 6, 1, 1}, 7, "matmul: out has C 6, but left and right give 5"},
		{OUT, NPUMEM_FX8, {2, 5, 2, 1}, 7, "matmul: out has H 2, but left and right give 1"},
		{LEFT,
		 NPUMEM_FX8,
		 {1, INT64_C(1) << 33, 1, 1},
		 7,
		 "would sum 8589934592 products, more than 4294967296"},
	};
	struct calls c;
	set_up(&c, &calls_fxn[0], &(struct shape){2, 3, 5}, (const int64_t[4]){7, 0, 7, 7}, true);
	ck_assert(!c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kernel_operand *operand = &c.operands[rows[i].role][0], was = *operand;
		operand->dtype = rows[i].dtype;
		operand->shape = rows[i].shape;
		operand->frac_bits = rows[i].frac_bits;
		calls_refused(&c, rows[i].text);
		*operand = was;
	}
	calls_param(&c, NPUMEM_PARAM_RELU, 1, 5, 0, 0, 0);
	calls_refused(&c, "matmul: relu is number 5");
	calls_free(&c);
}
END_TEST

Suite *suite_matmul(void)
{
	Suite *suite = suite_create("device/kernels/matmul");
	TCase *tcase = tcase_create("matmul");
	tcase_add_test(tcase, random_calls);
	tcase_add_test(tcase, wraps);
	tcase_add_test(tcase, refusals);
	suite_add_tcase(suite, tcase);
	return suite;
}
