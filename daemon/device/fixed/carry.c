/* The accumulator between two sums. */
#include "daemon/device/fixed/carry.h"

#include "daemon/device/fixed/accumulator.h"
#include "daemon/device/fixed/round.h"

void carry_init(struct carry *carry, unsigned data_bytes, int64_t bias_shift, int64_t between,
		const struct requantize *result)
{
	*carry = (struct carry){data_bytes == 1 ? 32 : 40, bias_shift, between, *result};
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

int64_t carry_join(const struct carry *carry, int64_t first, int64_t second, int64_t bias, int64_t *saturated,
		   int64_t *wrapped)
{
	int64_t outside = 0;
	int64_t held = accumulator_total(first, bias, carry->bias_shift, carry->bits, &outside);
	bool in_range = outside == 0;
	const struct requantize *result = &carry->result;
	if (carry->between > 0 && carry->bits == 32)
		held = round_right(held, carry->between, result->rounding);
	else if (carry->between > 0)
		held >>= carry->between < 63 ? carry->between : 63;
	held = add_shifted(held, carry->between < 0 ? -carry->between : 0, second, carry->bits, &in_range);
	*wrapped += !in_range;
	return round_clamp(held, result->shift, result->rounding, result->low, result->high, saturated);
}
