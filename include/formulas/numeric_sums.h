/* What one output of a kernel adds up, from the shapes of its tensors. */
#ifndef FORMULAS_NUMERIC_SUMS_H
#define FORMULAS_NUMERIC_SUMS_H

#include <npumem/numeric.h>

struct numeric_sum {
	const struct npumem_numeric_operand *data, *weights, *bias; /* weights and bias may be NULL */
	int64_t n;						    /* 1..NPUMEM_PRODUCTS_MAX */
};

struct numeric_sums {
	unsigned n;
	struct numeric_sum sums[NPUMEM_SUMS_MAX];
	const struct npumem_numeric_operand *out; /* where given */
	bool rounds_into_out; /* the sums are rounded into out, one by one where there are several */
	bool averages;	      /* and divided by their number first */
	int rounding;
};

/* 0 or INVALID: an unknown kernel, role or parameter, a shape that is missing or does not go with another. The
 * result points into `question`. */
int numeric_sums_find(const struct npumem_advise *question, struct numeric_sums *sums, struct npumem_error *error);

#endif
