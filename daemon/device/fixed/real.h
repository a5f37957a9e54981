/* fp32 to and from integers with frac_bits ("Data Format Conversion": Round(real * 2^frac_bits)), through the bits
 * of the float and integer arithmetic only: no mode of the host's floating point unit takes part. */
#ifndef DEVICE_REAL_H
#define DEVICE_REAL_H

#include <npumem/types.h>

/* What `real` (no NaN) is exactly: mantissa * 2^exponent. An infinity is a power of two beyond every container. */
struct real {
	int64_t mantissa;
	int64_t exponent;
};
struct real real_from_fp32(float real);

/* Where the first NaN of n reals is; n where there is none. */
int64_t real_find_nan(const float *reals, int64_t n);

/* x * 2^-frac_bits, |x| < 2^32, 0 <= frac_bits <= NPUMEM_FRAC_BITS_MAX; rounded where x has more than 24
 * significant bits. */
float real_to_fp32(int64_t x, int64_t frac_bits, enum npumem_rounding rounding);

#endif
