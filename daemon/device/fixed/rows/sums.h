/* Rows of exact sums of products that become results: multi_sum_join() and rescaled_sum_join(), which are the
 * definition, for many outputs at a time. */
#ifndef DEVICE_SUMS_H
#define DEVICE_SUMS_H

#include "daemon/device/fixed/multi_sum.h"
#include "daemon/device/fixed/rescaled_sum.h"
#include "daemon/device/isa.h"

/* One element for each output; data NULL: none. */
struct sums_bias {
	const void *data;
	unsigned bytes; /* of an element: 1 or 2 */
};

struct sums_counts {
	int64_t saturated, wrapped;
};

/* n results into `out`, a container of the data's width. Output j has sum i in sums[i * step + j]. Adds to
 * *counts. */
void sums_multi(enum isa isa, const struct multi_sum *multi, const int64_t *sums, int64_t step,
		const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts);
/* The same with the first sum of output j in sums[j] and the second in sums[step + j]. */
void sums_rescaled(enum isa isa, const struct rescaled_sum *rescaled, const int64_t *sums, int64_t step,
		   const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts);

/* Of one instruction set. */
struct sums_functions {
	void (*multi)(const struct multi_sum *multi, const int64_t *sums, int64_t step,
		      const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts);
	void (*rescaled)(const struct rescaled_sum *rescaled, const int64_t *sums, int64_t step,
			 const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts);
};

#endif
