/* A question about a kernel while it is answered: its tensors by role, its parameters, and the refusals that name
 * them. Everything is below 2^31 once checked. */
#ifndef FORMULAS_NUMERIC_QUERY_H
#define FORMULAS_NUMERIC_QUERY_H

#include <npumem/numeric.h>

#define NUMERIC_QUERY_EXTENT_MAX INT64_C(0x7fffffff)

/* What one output adds up. */
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

struct numeric_query {
	const struct npumem_advise *question;
	struct numeric_sums *sums;
	struct npumem_error *error;
};

/* Every operand has one of `roles` and every parameter is rounding or one of `params`, none is given twice;
 * extents are in range where they are given. Lists are separated by spaces; "in*" stands for in0, in1, … 0 or
 * INVALID. */
int numeric_query_check(const struct numeric_query *query, const char *roles, const char *params);

/* By role; NULL: not given. */
const struct npumem_numeric_operand *numeric_query_find(const struct numeric_query *query, const char *role);
/* The same with its shape; INVALID where that is not given. */
int numeric_query_need(const struct numeric_query *query, const char *role,
		       const struct npumem_numeric_operand **operand);
/* c * h * w. */
int64_t numeric_query_flattened(const struct npumem_numeric_operand *operand);
/* Value `i` of a parameter; `fallback` where it is not given. */
int64_t numeric_query_param(const struct numeric_query *query, const char *name, unsigned i, int64_t fallback);

/* 0, or INVALID with both numbers. */
int numeric_query_equal(const struct numeric_query *query, const char *what, int64_t is, const char *of,
			int64_t expected);
int numeric_query_within(const struct numeric_query *query, const char *what, int64_t value, int64_t least,
			 int64_t most);

/* Adds a sum of n products (or data, without weights) to the answer. INVALID where they are too many. */
int numeric_query_add(const struct numeric_query *query, const struct npumem_numeric_operand *data,
		      const struct npumem_numeric_operand *weights, const struct npumem_numeric_operand *bias,
		      int64_t n);

#endif
