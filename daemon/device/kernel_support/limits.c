/* relu= as numbers of the result's format. */
#include "daemon/device/kernel_support/limits.h"

/* In the order of the parameter's choices. */
enum limits_relu { LIMITS_NONE = 1, LIMITS_GEN, LIMITS_ONE, LIMITS_SIX };

/* real * 2^frac_bits where the container holds it, else the container's end. */
static int64_t within(int64_t real, int64_t frac_bits, int64_t high)
{
	return frac_bits < 32 && real << frac_bits < high ? real << frac_bits : high;
}

void limits_relu(const struct kernel_call *call, int64_t frac_bits, struct requantize *requantize)
{
	int64_t low = requantize->low, high = requantize->high;
	switch (kernel_param(call, NPUMEM_PARAM_RELU, 0, LIMITS_NONE)) {
	case LIMITS_GEN:
		requantize->limit_low = 0;
		break;
	case LIMITS_ONE:
		requantize->limit_low = -within(1, frac_bits, -low);
		requantize->limit_high = within(1, frac_bits, high);
		break;
	case LIMITS_SIX:
		requantize->limit_low = 0;
		requantize->limit_high = within(6, frac_bits, high);
		break;
	}
}
