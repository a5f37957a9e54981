/* The ranges behind npumem_bound and npumem_advise: what an accumulator adds up, before and after frac_bits were
 * given up. */
#ifndef FORMULAS_NUMERIC_BOUNDS_H
#define FORMULAS_NUMERIC_BOUNDS_H

#include <npumem/numeric.h>

struct numeric_span {
	int64_t low, high;
};

struct numeric_load {
	struct numeric_span data, weights; /* of one element; weights are 1..1 where nothing is multiplied */
	struct numeric_span bias;	   /* in the accumulator's format; 0..0 where there is none */
	bool bias_beyond;		   /* it is shifted so far that `bias` is only a part of it */
	int64_t n, weights_sum;		   /* weights_sum: 0 where unknown */
	struct numeric_span accumulator;
};

/* 0 or INVALID, as npumem_bound. */
int numeric_bounds_check(const struct npumem_terms *terms, struct npumem_error *error);

/* The load of terms that passed their check, with data and weights requantized to so many fewer frac_bits, each
 * fewer than their container's bits beside the sign, and the bias following where it would have more. */
void numeric_bounds_load(const struct npumem_terms *terms, int64_t give_up_data, int64_t give_up_weights,
			 struct numeric_load *load);

/* The extremes of one product; of data where nothing is multiplied. */
struct numeric_span numeric_bounds_product(const struct numeric_load *load);

/* How many steps of at least `low` and at most `high` fit into the accumulator beside the bias; -1 where the bias
 * alone does not. *up: which end the next one would pass. */
int64_t numeric_bounds_steps(const struct numeric_load *load, int64_t low, int64_t high, bool *up);

/* The exact extremes of the total, the bias included; those of the part where bias_beyond. */
struct numeric_span numeric_bounds_extremes(const struct numeric_load *load);

/* No operands take the total out of the accumulator. */
bool numeric_bounds_fit(const struct numeric_load *load);

#endif
