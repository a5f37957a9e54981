/* How many taps of a window one output can have, along one axis. */
#ifndef FORMULAS_NUMERIC_TAPS_H
#define FORMULAS_NUMERIC_TAPS_H

#include <stdint.h>

/* All below 2^31; in, kernel, stride and dilation at least 1. */
struct numeric_taps {
	int64_t in, kernel, stride, dilation;
	int64_t before, after; /* padding; of a transposed convolution what is cut off */
};

/* What the window spans: (kernel - 1) * dilation + 1. */
int64_t numeric_taps_span(const struct numeric_taps *axis);
/* The extent of the output of a transposed convolution, below 1 where nothing is left. */
int64_t numeric_taps_scattered(const struct numeric_taps *axis);

/* The most taps on the input that a window has which slides over it. The span fits the padded input, and neither
 * padding reaches the span. A dilation above 65536 over an input smaller than the window may count one too many.
 */
int64_t numeric_taps_slide(const struct numeric_taps *axis);
/* The most inputs that a transposed convolution without dilation adds into one output; at least one is left. */
int64_t numeric_taps_scatter(const struct numeric_taps *axis);

#endif
