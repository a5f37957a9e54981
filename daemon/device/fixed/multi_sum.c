/* Sums that have to be shifted left may cancel each other long after they have left 64 bits. So the total is
 * formed from the largest shift to the smallest, and only ever shifted by the difference; once it is past every
 * later sum put together, it stays where it is: only its sign matters then. */
#include "daemon/device/fixed/multi_sum.h"

#include <assert.h>
#include <string.h>

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/round.h"

/* MULTI_SUM_MAX accumulators of 40 bits are less than 2^45. */
#define MULTI_SUM_FAR (INT64_C(1) << 50)

static int64_t left_of(int64_t shift)
{
	return shift < 0 ? -shift : 0;
}

void multi_sum_init(struct multi_sum *multi, unsigned data_bytes, const int64_t *shifts, unsigned n,
		    int64_t bias_shift, const struct requantize *result)
{
	assert(n >= 1 && n <= MULTI_SUM_MAX);
	*multi = (struct multi_sum){
		.n = n,
		.bits = data_bytes == 1 ? 32 : 40,
		.bias_shift = bias_shift,
		.rounding = result->rounding,
		.low = result->low,
		.high = result->high,
	};
	memcpy(multi->shifts, shifts, n * sizeof(*shifts));
	for (unsigned i = 0; i < n; i++) {
		unsigned at = i;
		for (; at > 0 && left_of(shifts[multi->order[at - 1]]) < left_of(shifts[i]); at--)
			multi->order[at] = multi->order[at - 1];
		multi->order[at] = i;
	}
}

int64_t multi_sum_join(const struct multi_sum *multi, const int64_t *sums, int64_t step, int64_t bias,
		       int64_t *saturated, int64_t *wrapped)
{
	int64_t total = 0, left = left_of(multi->shifts[multi->order[0]]);
	for (unsigned i = 0; i < multi->n; i++) {
		unsigned which = multi->order[i];
		int64_t shift = multi->shifts[which];
		int64_t held = accumulator_total(sums[which * step], which == 0 ? bias : 0, multi->bias_shift,
						 multi->bits, wrapped);
		total = round_left(total, left - left_of(shift), -MULTI_SUM_FAR, MULTI_SUM_FAR);
		total += shift > 0 ? round_right(held, shift, multi->rounding) : held;
		left = left_of(shift);
	}
	return round_clamp(total, -left, multi->rounding, multi->low, multi->high, saturated);
}
