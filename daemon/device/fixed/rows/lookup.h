/* A table of the user's, read with elements of 8 or 16 bits: an entry for every input, or entries at equal
 * distances and the line between two of them. */
#ifndef DEVICE_LOOKUP_H
#define DEVICE_LOOKUP_H

#include "daemon/device/fixed/round.h"
#include "daemon/device/isa.h"

enum { LOOKUP_PAD = 1 }; /* entries that may be read behind the last one; their values do not matter */

struct lookup {
	const int16_t *entries;	      /* of the least input first */
	unsigned in_bytes, out_bytes; /* of an element: 1 or 2, signed */
	unsigned within;	      /* bits of an input between two entries; 0: each input has its own */
	enum npumem_rounding rounding;
};

/* The result for input x. It lies between two entries, so that nothing saturates. */
static inline int64_t lookup_read(const struct lookup *lookup, int64_t x)
{
	int64_t at = x + (lookup->in_bytes == 1 ? -INT8_MIN : -INT16_MIN), step = (int64_t)1 << lookup->within;
	const int16_t *entry = lookup->entries + (at >> lookup->within);
	if (lookup->within == 0)
		return entry[0];
	return entry[0] + round_right((entry[1] - entry[0]) * (at & (step - 1)), lookup->within, lookup->rounding);
}

/* out[i] = lookup_read(in[i]) for n elements. `in` and `out` may be the same. */
void lookup_row(enum isa isa, const struct lookup *lookup, const void *in, int64_t n, void *out);

#endif
