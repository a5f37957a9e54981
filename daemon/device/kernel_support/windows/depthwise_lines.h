/* Outputs of 8 bits straight from a plane: sums of taps that 32 bits hold, rounded, without what lies between two
 * rows of the plane. */
#ifndef DEVICE_DEPTHWISE_LINES_H
#define DEVICE_DEPTHWISE_LINES_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/fixed/rows/taps.h"

enum { DEPTHWISE_LINES_PITCH_MAX = 64 };

struct depthwise_lines {
	struct taps taps; /* of the first line; not split, the stride is 1 or 2 */
	int64_t n, step;  /* lines, and elements from one to the next */
	int64_t length;	  /* sums of a line */
	/* Of which sums at j, j + 1, ... j + 7 the bytes are all bits where they are outputs: for j below
	 * `pitch`, where it begins anew. */
	const uint64_t *real;
	int64_t pitch, way;	     /* and 8 modulo that */
	const struct requantize *to; /* to 8 bits, the shift not less than 0 */
	int64_t n_outputs;	     /* of all lines */
	uint8_t *out;
};

#endif
