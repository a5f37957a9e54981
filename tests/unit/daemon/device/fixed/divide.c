/* Rounded quotients by what a rounded quotient is: its error is at most half a unit, and a half goes where the
 * mode says. */

#include "daemon/device/fixed/divide.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

static struct oracle absolute(struct oracle a)
{
	return oracle_negative(a) ? oracle_negate(a) : a;
}

/* Twice the error of y as a * 2^shift / b, in units of 1 / (b * 2^-shift); and that unit's count in 1. */
static struct oracle twice_error(int64_t y, int64_t a, int64_t b, int64_t shift, struct oracle *unit)
{
	*unit = oracle_double(oracle_of(b), shift < 0 ? -shift : 0);
	struct oracle exact = oracle_double(oracle_of(a), shift > 0 ? shift : 0);
	struct oracle error = oracle_subtract(oracle_multiply(*unit, y), exact);
	return oracle_add(error, error);
}

static bool is_right(int64_t y, int64_t a, int64_t b, int64_t shift, int mode)
{
	struct oracle unit, error = twice_error(y, a, b, shift, &unit);
	if (oracle_less(absolute(error), unit))
		return true;
	if (oracle_less(unit, absolute(error)))
		return false;
	bool went_up = !oracle_negative(error);
	if (mode == NPUMEM_UP)
		return went_up;
	return mode == NPUMEM_NEAREST ? went_up == (a > 0) : y % 2 == 0;
}

static void check_divide(int64_t a, int64_t b, int64_t shift, int64_t low, int64_t high)
{
	for (int mode = 1; mode <= 3; mode++) {
		int64_t saturated = 0;
		int64_t y = divide_clamp(a, b, shift, (enum npumem_rounding)mode, low, high, &saturated);
		bool good;
		if (saturated) /* the last value of the container would have been wrong */
			good = saturated == 1 && !is_right(y, a, b, shift, mode) && y == (a > 0 ? high : low);
		else
			good = y >= low && y <= high && is_right(y, a, b, shift, mode);
		if (!good)
			ck_abort_msg("%lld * 2^%lld / %lld is not %lld (mode %d)", (long long)a, (long long)shift,
				     (long long)b, (long long)y, mode);
	}
}

TEST(all_small_quotients)
{
	for (int64_t a = -40; a <= 40; a++)
		for (int64_t b = 1; b <= 12; b++)
			for (int64_t shift = -4; shift <= 4; shift++)
				check_divide(a, b, shift, -8, 7);
}

TEST(random_quotients)
{
	uint64_t state = 5;
	for (int i = 0; i < 3000; i++) {
		int64_t a_bits = oracle_between(&state, 0, 59), b_bits = oracle_between(&state, 0, 59);
		int64_t a = oracle_between(&state, -(INT64_C(1) << a_bits) + 1, (INT64_C(1) << a_bits) - 1);
		int64_t b = oracle_between(&state, 1, INT64_C(1) << b_bits);
		int64_t shift = i % 2 ? oracle_between(&state, -127, 127) : b_bits - a_bits + i % 16;
		if (i % 3)
			check_divide(a, b, shift, INT16_MIN, INT16_MAX);
		else
			check_divide(a, b, shift, INT32_MIN, INT32_MAX);
	}
}
