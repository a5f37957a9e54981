/* The sum of two terms of different formats, exactly and rounded once: both are brought to the format with more
 * frac_bits, added, and rounded to the result's.
 *
 * Formats more than 31 bits apart do not meet in 64 bits. Then the finer term gives up its lowest bits and leaves
 * a mark in the lowest one kept where any of them was set. The coarser term, if it is not 0, is so large against
 * them that either the mark lies two places below every bit that decides the rounding, or the result saturates by
 * far. */
#ifndef DEVICE_ALIGN_H
#define DEVICE_ALIGN_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/fixed/round.h"

enum { ALIGN_LEFT_MAX = 31 };

struct align {
	bool first_is_coarse; /* the first term has fewer frac_bits (or as many) */
	unsigned left;	      /* shift of the coarser term; at most ALIGN_LEFT_MAX */
	int64_t beyond;	      /* further bits between the formats: those that the finer term gives up */
	int64_t frac_bits;    /* of the sum */
};

static inline void align_init(struct align *align, int64_t first_frac_bits, int64_t second_frac_bits)
{
	align->first_is_coarse = first_frac_bits <= second_frac_bits;
	int64_t fine = align->first_is_coarse ? second_frac_bits : first_frac_bits;
	int64_t apart = fine - (align->first_is_coarse ? first_frac_bits : second_frac_bits);
	align->left = apart > ALIGN_LEFT_MAX ? ALIGN_LEFT_MAX : (unsigned)apart;
	align->beyond = apart - align->left;
	align->frac_bits = fine - align->beyond;
}

/* first + second (each |x| <= 2^31) in the container of `result`, which has at most 16 bits and whose shift is
 * counted from align->frac_bits. */
static inline int64_t align_sum(const struct align *align, int64_t first, int64_t second,
				const struct requantize *result, int64_t *saturated)
{
	int64_t coarse = align->first_is_coarse ? first : second;
	int64_t fine = align->first_is_coarse ? second : first;
	int64_t shift = result->shift;
	if (align->beyond > 0 && coarse == 0) {
		shift += align->beyond;
	} else if (align->beyond > 0) {
		unsigned right = align->beyond < 62 ? (unsigned)align->beyond : 62;
		int64_t kept = fine >> right;
		fine = kept | (fine != (int64_t)((uint64_t)kept << right));
	}
	int64_t sum = coarse * ((int64_t)1 << align->left) + fine;
	return round_clamp(sum, shift, result->rounding, result->low, result->high, saturated);
}

#endif
