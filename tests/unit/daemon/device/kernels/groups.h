/* Random calls of softmax and l2_normalize, and the groups of their elements by four plain indices. */
#ifndef TESTS_DEVICE_KERNELS_GROUPS_H
#define TESTS_DEVICE_KERNELS_GROUPS_H

#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/tables.h"

enum { GROUPS_IN, GROUPS_OUT };
enum { GROUPS_NONE = 1, GROUPS_N, GROUPS_C, GROUPS_H, GROUPS_W };
enum { GROUPS_ELEMENTS_MAX = 1024 };

static const struct npumem_dims groups_shapes[] = {{1, 1, 1, 1}, {2, 3, 4, 5}, {1, 17, 1, 1},
						   {3, 1, 2, 9}, {1, 4, 7, 1}, {2, 2, 3, 40}};
enum { GROUPS_SHAPES = sizeof(groups_shapes) / sizeof(groups_shapes[0]) };

static inline void groups_set_up(struct calls *c, int number, int dtype, int64_t frac_bits,
				 const struct npumem_dims *s, int axis)
{
	calls_init(c, number);
	calls_add(c, "in", dtype, frac_bits, s->n, s->c, s->h, s->w);
	calls_add(c, "out", dtype, dtype == NPUMEM_FX8 ? 7 : 15, s->n, s->c, s->h, s->w);
	calls_param(c, NPUMEM_PARAM_AXIS, axis > 0 || s->n > 1, axis ? axis : GROUPS_NONE, 0, 0, 0);
}

/* Flat indices of the elements in the group of element `of`; returns how many. */
static inline int64_t groups_of(const struct npumem_dims *s, int axis, int64_t of, int64_t *members)
{
	int64_t count = 0, i = 0;
	int64_t w0 = of % s->w, h0 = of / s->w % s->h, c0 = of / s->w / s->h % s->c, n0 = of / s->w / s->h / s->c;
	for (int64_t n = 0; n < s->n; n++)
		for (int64_t c = 0; c < s->c; c++)
			for (int64_t h = 0; h < s->h; h++)
				for (int64_t w = 0; w < s->w; w++, i++) {
					bool in =
						axis <= GROUPS_NONE ||
						((axis == GROUPS_N || n == n0) && (axis == GROUPS_C || c == c0) &&
						 (axis == GROUPS_H || h == h0) && (axis == GROUPS_W || w == w0));
					if (in)
						members[count++] = i;
				}
	return count;
}

static inline int64_t groups_bits(int64_t x)
{
	int64_t bits = 0;
	for (; x > 0; x /= 2)
		bits++;
	return bits;
}

/* R(x, shift) for shifts of either sign. */
static inline int64_t groups_shift(int64_t x, int64_t shift, int mode)
{
	return shift >= 0 ? tables_round(x, shift, mode) : x * (INT64_C(1) << -shift);
}

#endif
