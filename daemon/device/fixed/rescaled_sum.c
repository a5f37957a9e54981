/* The accumulator between two sums. */
#include "daemon/device/fixed/rescaled_sum.h"

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/round.h"

void rescaled_sum_init(struct rescaled_sum *rescaled, unsigned data_bytes, int64_t bias_shift, int64_t between,
		       const struct requantize *result)
{
	*rescaled = (struct rescaled_sum){data_bytes == 1 ? 32 : 40, bias_shift, between, *result};
}

/* What the accumulator holds of held * 2^left + sum, |held| <= 2^39. */
static int64_t add_shifted(int64_t held, int64_t left, int64_t sum, unsigned bits, bool *in_range)
{
	/* Past 64 bits of either sign no sum of 62 bits brings it back into the accumulator. */
	int64_t exact = 0;
	bool far = left > 62 ? held != 0
			     : __builtin_mul_overflow(held, (int64_t)1 << left, &exact) ||
				       __builtin_add_overflow(exact, sum, &exact);
	if (left > 62 && !far)
		exact = sum;
	uint64_t low = (left > 63 ? 0 : (uint64_t)held << left) + (uint64_t)sum;
	int64_t value = (int64_t)(low << (64 - bits)) >> (64 - bits);
	*in_range = *in_range && !far && value == exact;
	return value;
}

int64_t rescaled_sum_join(const struct rescaled_sum *rescaled, int64_t first, int64_t second, int64_t bias,
			  int64_t *saturated, int64_t *wrapped)
{
	int64_t outside = 0;
	int64_t held = accumulator_total(first, bias, rescaled->bias_shift, rescaled->bits, &outside);
	bool in_range = outside == 0;
	const struct requantize *result = &rescaled->result;
	if (rescaled->between > 0 && rescaled->bits == 32)
		held = round_right(held, rescaled->between, result->rounding);
	else if (rescaled->between > 0)
		held >>= rescaled->between < 63 ? rescaled->between : 63;
	held = add_shifted(held, rescaled->between < 0 ? -rescaled->between : 0, second, rescaled->bits,
			   &in_range);
	*wrapped += !in_range;
	return round_clamp(held, result->shift, result->rounding, result->low, result->high, saturated);
}
