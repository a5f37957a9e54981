/* What one output of a kernel adds up, from the shapes of its tensors. */
#ifndef FORMULAS_NUMERIC_SUMS_H
#define FORMULAS_NUMERIC_SUMS_H

#include "include/formulas/numeric/numeric_query.h"

/* 0 or INVALID: an unknown kernel, role or parameter, a shape that is missing or does not go with another. The
 * result points into `question`. */
int numeric_sums_find(const struct npumem_advise *question, struct numeric_sums *sums, struct npumem_error *error);

#endif
