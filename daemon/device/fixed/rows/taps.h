/* Sums of products of elements at fixed distances: what one output of a window sees, for a row of them. */
#ifndef DEVICE_TAPS_H
#define DEVICE_TAPS_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* The products of 16-bit elements by weights of 9 bits stay in 32 bits. */
enum { TAPS_MAX = 128 };

struct taps {
	const void *in;		   /* of a signed type */
	unsigned bytes;		   /* of an element: 1 or 2 */
	int64_t stride;		   /* from one sum to the next, in elements */
	int64_t n;		   /* 1 to TAPS_MAX */
	int64_t offsets[TAPS_MAX]; /* from a sum's place, in elements */
	int32_t weights[TAPS_MAX]; /* -256 to 255 */
};

/* sums[j], j below n, of in[j * stride + offsets[k]] * weights[k] over all k. */
void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums);

#endif
