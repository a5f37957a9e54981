/* What the files of shapes share: extents within a budget, and the operands behind the weights. */
#ifndef TESTS_FUZZ_VALID_SHAPES_H
#define TESTS_FUZZ_VALID_SHAPES_H

#include "tests/fuzz/valid.h"

static inline struct npumem_dims dims(int64_t n, int64_t c, int64_t h, int64_t w)
{
	return (struct npumem_dims){n, c, h, w};
}

static inline int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The bias, of `bias`, or none, and out. `frac_bits`: the most that the bias may have. */
void valid_bias_and_out(struct valid_run *run, int64_t frac_bits, struct npumem_dims bias, int dtype,
			struct npumem_dims out);

/* ---- valid_windows.c ---- */

void valid_convolution(struct valid_run *run);
void valid_pool(struct valid_run *run);

#endif
