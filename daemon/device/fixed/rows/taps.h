/* Sums of products of elements at fixed distances: what one output of a window sees, for a row of them. Elements
 * are taken in pairs of neighbours, as multiply-add instructions of 16 bits do.
 *
 * Products of 16 by 16 bits do not stay in 32: such weights are split in their low bytes, without a sign, and
 * their high ones with it. Their sums meet in units of 2^TAPS_DROP, with a mark in the lowest bit for what is
 * below; no rounding shift by 2 or more can tell that from the sum itself. */
#ifndef DEVICE_TAPS_H
#define DEVICE_TAPS_H

#include <stdint.h>

#include "daemon/device/isa.h"

enum {
	TAPS_DROP = 7,
	TAPS_SPLIT_MAX = 256, /* taps whose split sums stay in 32 bits */
	TAPS_STRIDE_MAX = 16, /* past it: one by one */
	TAPS_SUMS_PAST = 32,  /* sums that may be written past the last one */
	TAPS_ELEMENTS_PAST =
		TAPS_SUMS_PAST * TAPS_STRIDE_MAX + 2, /* elements that may be read past the last one */
};

/* A pair's weights: the first in the low half. */
static inline int32_t taps_pair(int32_t first, int32_t second)
{
	return (int32_t)((uint32_t)(uint16_t)first | (uint32_t)second << 16);
}

struct taps {
	const int16_t *in;
	int64_t stride;		   /* from one sum to the next, in elements */
	int64_t n;		   /* pairs */
	const int64_t *offsets;	   /* of each pair's first element from a sum's place */
	const int32_t *low, *high; /* each pair's weights, 16 bits each; high NULL: not split */
	int32_t low_bias, high_bias;
};

/* sums[j], j below n: of in[j * stride + offsets[k]] and the element after it times the weights of pair k over all
 * k, plus the bias. Split: of both, as above. The caller knows that the sums of each fit in 32 bits. */
void taps_row(enum isa isa, const struct taps *taps, int64_t n, int32_t *sums);

#endif
