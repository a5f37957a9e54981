/* Real numbers to fixed point and back. Multiplying by a power of two is exact in floating point, so the only
 * rounding is the one asked for. */
#include "client/ctl/core/arrays/stream.h"

#include <math.h>
#include <string.h>

int64_t quantize_one(double real, int64_t frac_bits, int rounding, int64_t low, int64_t high, int64_t *saturated)
{
	double scaled = ldexp(real, (int)frac_bits);
	/* Past these the result saturates however it is rounded, and may not fit an integer. */
	if (scaled > (double)high + 1 || scaled < (double)low - 1) {
		++*saturated;
		return scaled > 0 ? high : low;
	}
	double whole = trunc(scaled), rest = fabs(scaled - whole);
	int64_t value = (int64_t)whole, away = scaled < 0 ? -1 : 1;
	bool tie_away = rounding == NPUMEM_NEAREST || (rounding == NPUMEM_UP && scaled > 0) ||
			(rounding == NPUMEM_CONVERGENT && value % 2);
	if (rest > 0.5 || (rest == 0.5 && tie_away))
		value += away;
	if (value >= low && value <= high)
		return value;
	++*saturated;
	return value > high ? high : low;
}

int quantize_array(const void *reals, bool is_double, size_t n, int dtype, int64_t frac_bits, int rounding,
		   void *containers, int64_t *saturated, size_t *nan_at)
{
	int64_t low, high;
	if (!npumem_dtype_range(dtype, &low, &high))
		return NPUMEM_INVALID;
	for (size_t i = 0; i < n; i++) {
		double real = is_double ? ((const double *)reals)[i] : (double)((const float *)reals)[i];
		if (isnan(real)) {
			*nan_at = i;
			return NPUMEM_INVALID;
		}
		int64_t value = quantize_one(real, frac_bits, rounding, low, high, saturated);
		if (npumem_dtype_bytes(dtype) == 1)
			((int8_t *)containers)[i] = (int8_t)value;
		else
			((int16_t *)containers)[i] = (int16_t)value;
	}
	return 0;
}

void quantize_back(const void *containers, size_t n, int dtype, int64_t frac_bits, float *reals)
{
	for (size_t i = 0; i < n; i++) {
		int value = npumem_dtype_bytes(dtype) == 1 ? ((const int8_t *)containers)[i]
							   : ((const int16_t *)containers)[i];
		reals[i] = ldexpf((float)value, -(int)frac_bits);
	}
}
