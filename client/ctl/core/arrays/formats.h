/* Which frac_bits fit real numbers: what each candidate clips, and how far it is off. */
#ifndef CTL_CORE_FORMATS_H
#define CTL_CORE_FORMATS_H

#include "client/ctl/core/arrays/values.h"

struct formats_candidate {
	int64_t frac_bits, clipped;
	double largest; /* error */
	double snr;	/* in dB; infinite where all is exact */
};

/* The most frac_bits with which nothing is clipped; all but the sign where everything is 0. 0, or INVALID: not
 * even 0 does, or there is a NaN. */
int formats_auto(const struct values *values, int dtype, int rounding, int64_t *frac_bits,
		 struct npumem_error *error);
void formats_judge(const struct values *values, int dtype, int64_t frac_bits, int rounding,
		   struct formats_candidate *candidate);
/* Of weights [K,M,...]: the largest sum of |weights| of one output, as integers of the format. `each`: an output
 * is an index of the first two dimensions (a cell's gates), not of the second alone. */
int64_t formats_weights_sum(const struct values *values, int dtype, int64_t frac_bits, int rounding, bool each);

#endif
