/* Sums that have to be shifted left may cancel each other long after they have left 64 bits. So the total is
 * formed from the largest shift to the smallest, and only ever shifted by the difference; once it is past every
 * later sum put together, it stays where it is: only its sign matters then. */
#include "daemon/device/fixed/partial.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/round.h"

/* PARTIAL_MAX accumulators of 40 bits are less than 2^45. */
#define PARTIAL_FAR (INT64_C(1) << 50)

static int64_t left_of(int64_t shift)
{
	return shift < 0 ? -shift : 0;
}

void partial_init(struct partial *partial, unsigned data_bytes, const int64_t *shifts, unsigned n,
		  int64_t bias_shift, const struct requantize *result)
{
	assert(n >= 1 && n <= PARTIAL_MAX);
	*partial = (struct partial){
		.n = n,
		.bits = data_bytes == 1 ? 32 : 40,
		.bias_shift = bias_shift,
		.rounding = result->rounding,
		.low = result->low,
		.high = result->high,
	};
	memcpy(partial->shifts, shifts, n * sizeof(*shifts));
	for (unsigned i = 0; i < n; i++) {
		unsigned at = i;
		for (; at > 0 && left_of(shifts[partial->order[at - 1]]) < left_of(shifts[i]); at--)
			partial->order[at] = partial->order[at - 1];
		partial->order[at] = i;
	}
}

int64_t partial_join(const struct partial *partial, const int64_t *sums, int64_t step, int64_t bias,
		     int64_t *saturated, int64_t *wrapped)
{
	int64_t total = 0, left = left_of(partial->shifts[partial->order[0]]);
	for (unsigned i = 0; i < partial->n; i++) {
		unsigned which = partial->order[i];
		int64_t shift = partial->shifts[which];
		int64_t held = accumulator_total(sums[which * step], which == 0 ? bias : 0, partial->bias_shift,
						 partial->bits, wrapped);
		total = round_left(total, left - left_of(shift), -PARTIAL_FAR, PARTIAL_FAR);
		total += shift > 0 ? round_right(held, shift, partial->rounding) : held;
		left = left_of(shift);
	}
	return round_clamp(total, -left, partial->rounding, partial->low, partial->high, saturated);
}
