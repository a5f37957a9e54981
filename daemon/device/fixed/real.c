/* Floats taken apart and put together by their bits (IEEE 754 binary32). */
#include "daemon/device/fixed/real.h"

#include <math.h>
#include <string.h>

#include "daemon/device/fixed/multiversion.h"
#include "daemon/device/fixed/round.h"

enum {
	REAL_MANTISSA_BITS = 23, /* stored; one more is implied */
	REAL_BIAS = 127 + REAL_MANTISSA_BITS,
	REAL_EXPONENT_MAX = 255,    /* infinities and NaN */
	REAL_INFINITE_SHIFT = 1024, /* past every frac_bits and container */
};

static uint32_t bits_of(float real)
{
	uint32_t bits;
	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* By the bits, past those of an infinity of either sign. */
MULTIVERSION_PART bool is_nan(uint32_t bits)
{
	return (int32_t)(bits & 0x7fffffff) > REAL_EXPONENT_MAX << REAL_MANTISSA_BITS;
}

MULTIVERSION_PART bool any_nan(const float *reals, int64_t n)
{
	uint32_t any = 0;
	for (int64_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &reals[i], sizeof(bits));
		any |= is_nan(bits);
	}
	return any;
}

MULTIVERSION_PART int64_t find_nan(const float *reals, int64_t n)
{
	int64_t i = 0;
	if (!any_nan(reals, n))
		return n;
	while (!is_nan(bits_of(reals[i])))
		i++;
	return i;
}
MULTIVERSION(int64_t, real_find_nan, (const float *reals, int64_t n), find_nan, (reals, n))

struct real real_from_fp32(float real)
{
	uint32_t bits = bits_of(real);
	int64_t exponent = bits >> REAL_MANTISSA_BITS & REAL_EXPONENT_MAX;
	int64_t mantissa = bits & (((uint32_t)1 << REAL_MANTISSA_BITS) - 1);
	struct real parts;
	if (exponent == REAL_EXPONENT_MAX)
		parts = (struct real){1, REAL_INFINITE_SHIFT};
	else if (exponent == 0) /* subnormal */
		parts = (struct real){mantissa, 1 - REAL_BIAS};
	else
		parts = (struct real){mantissa | (int64_t)1 << REAL_MANTISSA_BITS, exponent - REAL_BIAS};
	if (bits >> 31)
		parts.mantissa = -parts.mantissa;
	return parts;
}

float real_to_fp32(int64_t x, int64_t frac_bits, enum npumem_rounding rounding)
{
	uint64_t magnitude = x < 0 ? -(uint64_t)x : (uint64_t)x;
	int64_t excess = 0;
	while (magnitude >> excess > (UINT64_C(1) << (REAL_MANTISSA_BITS + 1)) - 1)
		excess++;
	if (excess > 0)
		x = round_right(x, excess, rounding);
	/* Both steps are exact: 24 bits (or 2^24 itself), and 2^-127 is 22 places above the least subnormal. */
	return ldexpf((float)x, (int)(excess - frac_bits));
}
