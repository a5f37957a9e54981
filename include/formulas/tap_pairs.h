/* How many pairs of a window's tap and an element there are, along one axis. */
#ifndef FORMULAS_TAP_PAIRS_H
#define FORMULAS_TAP_PAIRS_H

#include <stdint.h>

/* All below 2^31 and, but `before`, above 0; n and taps may be 0. */
struct tap_pairs {
	int64_t n, taps, stride, dilation, before, extent;
};

/* Pairs of a point i of `n` and a tap t of `taps` with 0 <= i * stride + t * dilation - before < extent. A client
 * chooses how many there are: they are not walked. */
int64_t tap_pairs(const struct tap_pairs *axis);

#endif
