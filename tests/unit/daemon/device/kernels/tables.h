/* The tables and their interpolation once more, of another make than the product's: entries from their formulas in
 * floating point, places by division. */
#ifndef TESTS_DEVICE_KERNELS_TABLES_H
#define TESTS_DEVICE_KERNELS_TABLES_H

#include <math.h>
#include <stdint.h>

#include "tests/support/oracle.h"

enum tables_function { TABLES_SIGMOID, TABLES_TANH, TABLES_EXP, TABLES_INVSQRT };
enum { TABLES_SIZE_MAX = 400 };

struct tables {
	int64_t entries[TABLES_SIZE_MAX];
	int64_t size, frac_bits, offset, out_frac_bits;
};

static inline long double tables_real(enum tables_function function, long double x)
{
	switch (function) {
	case TABLES_SIGMOID:
		return 1 / (1 + expl(-x));
	case TABLES_TANH:
		return tanhl(x);
	case TABLES_EXP:
		return x < 0 ? expl(x) : 1;
	default:
		return 1 / sqrtl(x);
	}
}

/* library: 1 mli 2.0, 2 mli 1.1 */
static inline struct tables tables_of(enum tables_function function, int library)
{
	static const int64_t sizes[][2] = {{320, 180}, {344, 178}, {358, 181}, {97, 0}};
	static const int64_t frac_bits[][2] = {{4, 3}, {5, 4}, {5, 4}, {0, 0}};
	static const int64_t offsets[][2] = {{160, 90}, {172, 89}, {356, 179}, {-32, 0}};
	struct tables t = {.size = sizes[function][library - 1],
			   .frac_bits = frac_bits[function][library - 1],
			   .offset = offsets[function][library - 1],
			   .out_frac_bits = function == TABLES_INVSQRT ? 17 : 15};
	for (int64_t i = 0; i < t.size; i++) {
		long double x = ldexpl((long double)(i - t.offset), -(int)t.frac_bits);
		long double y = roundl(ldexpl(tables_real(function, x), (int)t.out_frac_bits));
		t.entries[i] = y > 32767 ? 32767 : y < -32768 ? -32768 : (int64_t)y;
	}
	return t;
}

static inline int64_t tables_floor(int64_t x, int64_t by)
{
	return x / by - (x % by < 0);
}

/* x / 2^shift in a rounding mode, 0 <= shift <= 60. */
static inline int64_t tables_round(int64_t x, int64_t shift, int rounding)
{
	int64_t by = INT64_C(1) << shift, down = tables_floor(x, by), twice = 2 * (x - down * by);
	if (twice != by)
		return twice > by ? down + 1 : down;
	if (rounding == ORACLE_UP)
		return down + 1;
	if (rounding == ORACLE_NEAREST)
		return x < 0 ? down : down + 1;
	return down % 2 == 0 ? down : down + 1;
}

static inline int64_t tables_within(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

static inline int64_t tables_read(const struct tables *t, int64_t x, int64_t frac_bits, int rounding)
{
	if (frac_bits <= t->frac_bits) {
		int64_t at = x * (INT64_C(1) << (t->frac_bits - frac_bits)) + t->offset;
		return t->entries[tables_within(at, 0, t->size - 1)];
	}
	int64_t finer = frac_bits - t->frac_bits;
	if (finer > 15) {
		x = tables_floor(x, INT64_C(1) << (finer > 30 ? 15 : finer - 15));
		finer = 15;
	}
	int64_t step = INT64_C(1) << finer, place = tables_floor(x, step);
	int64_t at = tables_within(place + t->offset, 0, t->size - 2);
	return t->entries[at] -
	       tables_round((t->entries[at] - t->entries[at + 1]) * (x - place * step), finer, rounding);
}

#endif
