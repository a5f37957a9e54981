/* Reductions along axes by plain loops over every element, for the tests of reduce_sum and reduce_max. */
#ifndef TESTS_SUPPORT_REDUCE_ORACLE_H
#define TESTS_SUPPORT_REDUCE_ORACLE_H

#include "tests/unit/daemon/device/kernels/calls.h"

enum { REDUCE_ORACLE_IN, REDUCE_ORACLE_OUT };

/* Bit i of `axes`: along dimension i. No bit: axes= is not given, which means all. */
static inline void reduce_oracle_axes(struct calls *c, unsigned axes)
{
	struct npumem_param *param = &c->call.params.given[NPUMEM_PARAM_AXES];
	param->number = NPUMEM_PARAM_AXES;
	param->n_values = 0;
	for (unsigned i = 4; i-- > 0;) /* backwards: their order means nothing */
		if (axes >> i & 1)
			param->values[param->n_values++] = i + 1;
}

static inline void reduce_oracle_compare(struct calls *c, const int64_t in[4], const int64_t out[4], bool sums)
{
	int64_t low, high, saturated = 0, at = 0, n_out = out[0] * out[1] * out[2] * out[3];
	int64_t *want = malloc((size_t)n_out * sizeof(*want));
	ck_assert_ptr_nonnull(want);
	for (int64_t i = 0; i < n_out; i++)
		want[i] = sums ? 0 : INT64_MIN;
	for (int64_t n = 0; n < in[0]; n++)
		for (int64_t ch = 0; ch < in[1]; ch++)
			for (int64_t h = 0; h < in[2]; h++)
				for (int64_t w = 0; w < in[3]; w++, at++) {
					int64_t x = calls_get(c, REDUCE_ORACLE_IN, at);
					int64_t *to =
						&want[((n % out[0] * out[1] + ch % out[1]) * out[2] + h % out[2]) *
							      out[3] +
						      w % out[3]];
					*to = sums ? *to + x : *to > x ? *to : x;
				}
	const struct kernel_operand *operand = &c->operands[REDUCE_ORACLE_OUT][0];
	int64_t shift = c->operands[REDUCE_ORACLE_IN][0].frac_bits - operand->frac_bits;
	npumem_dtype_range(operand->dtype, &low, &high);
	for (int64_t i = 0; i < n_out; i++)
		ck_assert_int_eq(
			calls_get(c, REDUCE_ORACLE_OUT, i),
			oracle_result(oracle_of(want[i]), shift, c->call.rounding, low, high, &saturated));
	free(want);
	ck_assert_int_eq(c->call.counts.saturated, saturated);
	ck_assert_int_eq(c->call.counts.wrapped, 0);
	ck_assert_int_eq(c->call.counts.macs, 0);
}

static inline void reduce_oracle_run(int kernel, unsigned axes, int mode, uint64_t *state)
{
	/* Rows past a block, extents of 1 between others, one element. */
	static const int64_t shapes[][4] = {{2, 3, 4, 5}, {2, 3, 1, 600}, {5, 1, 3, 1}, {1, 300, 1, 2},
					    {1, 1, 1, 1}, {3, 2, 17, 19}, {2, 9, 5, 9}};
	for (unsigned s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
		const int64_t *in = shapes[s];
		int64_t out[4];
		for (unsigned i = 0; i < 4; i++)
			out[i] = axes == 0 || axes >> i & 1 ? 1 : in[i];
		struct calls c;
		int dtype = oracle_random(state) % 2 ? NPUMEM_FX8 : NPUMEM_FX16;
		int64_t frac_bits = oracle_between(state, 0, 127);
		int64_t out_frac_bits = frac_bits - oracle_between(state, -2, 12);
		out_frac_bits = out_frac_bits < 0 ? 0 : out_frac_bits > 127 ? 127 : out_frac_bits;
		calls_init(&c, kernel);
		calls_add(&c, "in", dtype, frac_bits, in[0], in[1], in[2], in[3]);
		calls_add(&c, "out", dtype, out_frac_bits, out[0], out[1], out[2], out[3]);
		reduce_oracle_axes(&c, axes);
		c.call.rounding = (enum npumem_rounding)mode;
		calls_sample(&c, REDUCE_ORACLE_IN, state);
		calls_run(&c);
		reduce_oracle_compare(&c, in, out, kernel == NPUMEM_KERNEL_REDUCE_SUM);
		calls_free(&c);
	}
}

static inline void reduce_oracle_refuses(int kernel)
{
	struct calls c;
	calls_init(&c, kernel);
	calls_add(&c, "in", NPUMEM_FX8, 7, 2, 3, 4, 5);
	calls_add(&c, "out", NPUMEM_FX8, 3, 2, 1, 4, 1);
	struct kernel_operand *in = &c.operands[REDUCE_ORACLE_IN][0], *out = &c.operands[REDUCE_ORACLE_OUT][0];
	calls_param(&c, NPUMEM_PARAM_AXES, 2, 4, 2, 0, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	ck_assert(!c.kernel->in_place);
	in->dtype = NPUMEM_INT8;
	calls_refused(&c, ": in is int8, but must be fx8 or fx16");
	in->dtype = NPUMEM_FX8;
	out->dtype = NPUMEM_FX16;
	calls_refused(&c, ": out is fx16, but must be fx8 as in is");
	out->dtype = NPUMEM_FX8;
	out->shape = (struct npumem_dims){2, 3, 4, 1};
	calls_refused(&c, ": out has C 3, but in and axes give 1");
	out->shape = (struct npumem_dims){1, 1, 4, 1};
	calls_refused(&c, ": out has N 1, but in and axes give 2");
	out->shape = (struct npumem_dims){2, 1, 4, 1};
	calls_param(&c, NPUMEM_PARAM_AXES, 3, 2, 4, 2, 0);
	calls_refused(&c, ": axes names c twice");
	calls_param(&c, NPUMEM_PARAM_AXES, 2, 2, 5, 0, 0);
	calls_refused(&c, ": axes is number 5, but its choices are 1 to 4: n c h w");
	calls_param(&c, NPUMEM_PARAM_AXES, 2, 0, 2, 0, 0);
	calls_refused(&c, ": axes is number 0, but its choices are 1 to 4: n c h w");
	calls_param(&c, NPUMEM_PARAM_AXES, 0, 0, 0, 0, 0);
	calls_refused(&c, ": out has N 2, but in and axes give 1");
	calls_free(&c);
}

#endif
