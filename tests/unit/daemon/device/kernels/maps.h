/* What the tests of sigmoid and tanh have in common: every input, against the formula and against the real
 * function, and every refusal. */
#ifndef TESTS_DEVICE_KERNELS_MAPS_H
#define TESTS_DEVICE_KERNELS_MAPS_H

#include <stdio.h>

#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/tables.h"

enum { MAPS_IN, MAPS_OUT };

static inline void maps_set_up(struct calls *c, int number, int dtype, int64_t frac_bits, int library)
{
	int64_t n = dtype == NPUMEM_FX8 ? 256 : 65536;
	calls_init(c, number);
	calls_add(c, "in", dtype, frac_bits, 2, n / 32, 2, 8);
	calls_add(c, "out", dtype, dtype == NPUMEM_FX8 ? 7 : 15, 2, n / 32, 2, 8);
	calls_param(c, NPUMEM_PARAM_LUT, library > 0, library, 0, 0, 0);
}

static inline void maps_every_value(int number, enum tables_function function, int dtype, int64_t frac_bits,
				    int library, int mode)
{
	struct tables t = tables_of(function, library ? library : 1);
	int64_t n = dtype == NPUMEM_FX8 ? 256 : 65536, clamped = 0;
	struct calls c;
	maps_set_up(&c, number, dtype, frac_bits, library);
	c.call.rounding = (enum npumem_rounding)mode;
	for (int64_t i = 0; i < n; i++)
		calls_put(&c, MAPS_IN, i, i - n / 2);
	calls_run(&c);
	for (int64_t i = 0; i < n; i++) {
		int64_t want = tables_result(&t, i - n / 2, frac_bits, npumem_dtype_bytes(dtype), mode, &clamped);
		int64_t got = calls_get(&c, MAPS_OUT, i);
		ck_assert_msg(got == want, "f(%d in Q.%d) is %d, not %d", (int)(i - n / 2), (int)frac_bits,
			      (int)got, (int)want);
	}
	ck_assert_int_eq(c.call.counts.saturated, clamped);
	ck_assert_int_eq(c.call.counts.wrapped, 0);
	ck_assert_int_eq(c.call.counts.macs, 0);
	calls_free(&c);
}

/* So many bytes that each is looked up in a table of all. */
static inline void maps_many(int number, enum tables_function function)
{
	enum { FEATURES = 256, LENGTH = 64 };
	struct tables t = tables_of(function, 1);
	int64_t clamped = 0;
	struct calls c;
	calls_init(&c, number);
	calls_add(&c, "in", NPUMEM_FX8, 5, 2, FEATURES / 2, 8, LENGTH / 8);
	calls_add(&c, "out", NPUMEM_FX8, 7, 2, FEATURES / 2, 8, LENGTH / 8);
	for (int64_t i = 0; i < FEATURES * LENGTH; i++)
		calls_put(&c, MAPS_IN, i, (int8_t)(i * 7));
	calls_run(&c);
	for (int64_t i = 0; i < FEATURES * LENGTH; i++)
		ck_assert_int_eq(calls_get(&c, MAPS_OUT, i),
				 tables_result(&t, (int8_t)(i * 7), 5, 1, c.call.rounding, &clamped));
	ck_assert_int_eq(c.call.counts.saturated, clamped);
	calls_free(&c);
}

/* The real function, as near as a table of mli 1.1 and a rounding to 8 bits come. */
static inline void maps_near_the_real_function(int number, enum tables_function function)
{
	for (int library = 1; library <= 2; library++)
		for (int64_t frac_bits = 0; frac_bits <= 15; frac_bits += 5) {
			struct calls c;
			maps_set_up(&c, number, NPUMEM_FX16, frac_bits, library);
			for (int64_t i = 0; i < 65536; i++)
				calls_put(&c, MAPS_IN, i, i - 32768);
			calls_run(&c);
			for (int64_t i = 0; i < 65536; i += 97) {
				double real =
					(double)tables_real(function, ldexp((double)(i - 32768), -(int)frac_bits));
				ck_assert_double_eq_tol((double)calls_get(&c, MAPS_OUT, i) / 32768, real, 0.0005);
			}
			calls_free(&c);
		}
}

static inline void maps_refusals(int number, const char *name)
{
	char text[128];
	struct calls c;
	maps_set_up(&c, number, NPUMEM_FX8, 4, 1);
	ck_assert(c.kernel->in_place);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	c.operands[MAPS_OUT][0].frac_bits = 15;
	snprintf(text, sizeof(text), "%s: out has 15 frac_bits, but must have the 7 of fx8 results in [-1, 1)",
		 name);
	calls_refused(&c, text);
	c.operands[MAPS_IN][0].dtype = c.operands[MAPS_OUT][0].dtype = NPUMEM_FX16;
	c.operands[MAPS_OUT][0].frac_bits = 7;
	snprintf(text, sizeof(text), "%s: out has 7 frac_bits, but must have the 15 of fx16 results in [-1, 1)",
		 name);
	calls_refused(&c, text);
	c.operands[MAPS_IN][0].dtype = c.operands[MAPS_OUT][0].dtype = NPUMEM_FX8;
	c.operands[MAPS_IN][0].dtype = NPUMEM_INT8;
	calls_refused(&c, "in is int8, but must be fx8 or fx16");
	c.operands[MAPS_IN][0].dtype = NPUMEM_FX16;
	calls_refused(&c, "out is fx8, but must be fx16 as in is");
	c.operands[MAPS_IN][0].dtype = NPUMEM_FX8;
	for (unsigned d = 0; d < 4; d++) {
		struct npumem_dims *s = &c.operands[MAPS_OUT][0].shape;
		int64_t *extent = d == 0 ? &s->n : d == 1 ? &s->c : d == 2 ? &s->h : &s->w;
		static const char *const dims[] = {"out has N 3, but in has 2", "out has C 9, but in has 8",
						   "out has H 3, but in has 2", "out has W 9, but in has 8"};
		++*extent;
		calls_refused(&c, dims[d]);
		--*extent;
	}
	calls_param(&c, NPUMEM_PARAM_LUT, 1, 3, 0, 0, 0);
	calls_refused(&c, "lut is number 3, but its choices are 1 to 2: mli2_0 mli1_1");
	calls_param(&c, NPUMEM_PARAM_LUT, 0, 0, 0, 0, 0);
	ck_assert_int_eq(c.kernel->check(&c.call, &c.error), 0);
	calls_free(&c);
}

#endif
