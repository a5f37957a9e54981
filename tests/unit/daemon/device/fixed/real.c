/* fp32 to fixed point and back: the arithmetic chapter's figures, infinities, subnormals, ties. */
#include <math.h>

#include "daemon/device/fixed/real.h"
#include "daemon/device/fixed/round.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

/* Round(real * 2^frac_bits), and whether that saturated. */
static int64_t quantize(float real, int64_t frac_bits, enum npumem_rounding rounding, int64_t low, int64_t high,
			int64_t *saturated)
{
	struct real parts = real_from_fp32(real);
	return round_clamp(parts.mantissa, -(parts.exponent + frac_bits), rounding, low, high, saturated);
}

TEST(worked_examples)
{
	int64_t saturated = 0;
	/* "Round(0.85 * 128) = Round(108.8) = 109 (0x6D)" */
	ck_assert_int_eq(quantize(0.85f, 7, NPUMEM_NEAREST, INT8_MIN, INT8_MAX, &saturated), 0x6d);
	/* "Round(-1.09 * 1024) = Round(-1116.16) = -1116 (0xFBA4)" */
	ck_assert_int_eq(quantize(-1.09f, 10, NPUMEM_NEAREST, INT16_MIN, INT16_MAX, &saturated), -1116);
	ck_assert_int_eq((uint16_t)-1116, 0xfba4);
	ck_assert_int_eq(saturated, 0);
	/* "5448 / 2^15 = 0.166259765625", "-1116 / 2^10 = -1.08984375" */
	ck_assert(real_to_fp32(5448, 15, NPUMEM_NEAREST) == 0.166259765625f);
	ck_assert(real_to_fp32(-1116, 10, NPUMEM_NEAREST) == -1.08984375f);
	/* "0x4000 in Q.15 represents 0.5, in Q.14 1.0"; 0x20 in Q.10 is 0.03125; 0x220 in Q.10 is 0.53125 */
	ck_assert(real_to_fp32(0x4000, 15, NPUMEM_UP) == 0.5f);
	ck_assert(real_to_fp32(0x4000, 14, NPUMEM_UP) == 1.0f);
	ck_assert(real_to_fp32(0x20, 10, NPUMEM_UP) == 0.03125f);
	ck_assert(real_to_fp32(0x220, 10, NPUMEM_UP) == 0.53125f);
	/* "for Q.7 [-1.0, 0.9921875]", "for Q.15 [-1, 0.999969482421875]" */
	ck_assert(real_to_fp32(INT8_MIN, 7, NPUMEM_UP) == -1.0f);
	ck_assert(real_to_fp32(INT8_MAX, 7, NPUMEM_UP) == 0.9921875f);
	ck_assert(real_to_fp32(INT16_MAX, 15, NPUMEM_UP) == 0.999969482421875f);
}

TEST(infinities_saturate)
{
	int64_t saturated = 0;
	ck_assert_int_eq(quantize(INFINITY, 0, NPUMEM_UP, INT8_MIN, INT8_MAX, &saturated), INT8_MAX);
	ck_assert_int_eq(quantize(-INFINITY, 127, NPUMEM_UP, INT16_MIN, INT16_MAX, &saturated), INT16_MIN);
	ck_assert_int_eq(quantize(-INFINITY, 0, NPUMEM_UP, 0, UINT32_MAX, &saturated), 0);
	ck_assert_int_eq(saturated, 3);
	float reals[70];
	for (int64_t n = 0; n <= 70; n++) {
		for (int64_t i = 0; i < n; i++)
			reals[i] = i % 4 == 0 ? INFINITY : i % 4 == 1 ? -INFINITY : i % 4 == 2 ? 0.0f : 3e38f;
		ck_assert_int_eq(real_find_nan(reals, n), n);
		for (int64_t i = n - 1; i >= 0; i--) {
			reals[i] = i % 2 ? NAN : -NAN;
			ck_assert_int_eq(real_find_nan(reals, n), i);
		}
	}
}

TEST(the_smallest)
{
	int64_t saturated = 0;
	float least = ldexpf(1.0f, -149);
	ck_assert_int_eq(quantize(least, 127, NPUMEM_UP, INT16_MIN, INT16_MAX, &saturated), 0);
	ck_assert_int_eq(quantize(ldexpf(1.0f, -128), 127, NPUMEM_UP, INT16_MIN, INT16_MAX, &saturated), 1);
	ck_assert_int_eq(quantize(ldexpf(1.0f, -128), 127, NPUMEM_CONVERGENT, INT16_MIN, INT16_MAX, &saturated),
			 0);
	ck_assert_int_eq(quantize(-ldexpf(1.0f, -128), 127, NPUMEM_NEAREST, INT16_MIN, INT16_MAX, &saturated), -1);
	ck_assert_int_eq(quantize(-0.0f, 127, NPUMEM_NEAREST, INT16_MIN, INT16_MAX, &saturated), 0);
	ck_assert(real_to_fp32(1, 127, NPUMEM_UP) == ldexpf(1.0f, -127));
	ck_assert(real_to_fp32(-32768, 127, NPUMEM_UP) == -ldexpf(1.0f, -112));
	ck_assert(real_to_fp32(0, 127, NPUMEM_UP) == 0.0f);
	ck_assert_int_eq(saturated, 0);
}

TEST(integers_of_more_than_24_bits)
{
	/* 2^24 + 1 is a tie between 2^24 and 2^24 + 2. */
	ck_assert(real_to_fp32(16777217, 0, NPUMEM_CONVERGENT) == 16777216.0f);
	ck_assert(real_to_fp32(16777217, 0, NPUMEM_UP) == 16777218.0f);
	ck_assert(real_to_fp32(16777217, 0, NPUMEM_NEAREST) == 16777218.0f);
	ck_assert(real_to_fp32(-16777217, 0, NPUMEM_UP) == -16777216.0f);
	ck_assert(real_to_fp32(-16777217, 0, NPUMEM_NEAREST) == -16777218.0f);
	ck_assert(real_to_fp32(16777219, 0, NPUMEM_CONVERGENT) == 16777220.0f);
	ck_assert(real_to_fp32(UINT32_MAX, 0, NPUMEM_CONVERGENT) == 4294967296.0f);
	ck_assert(real_to_fp32(INT32_MIN, 0, NPUMEM_UP) == -2147483648.0f);
	ck_assert(real_to_fp32(INT32_MAX, 0, NPUMEM_UP) == 2147483648.0f);
	ck_assert(real_to_fp32(16777215, 0, NPUMEM_UP) == 16777215.0f);
}

TEST(against_long_double)
{
	uint64_t state = 8;
	for (int i = 0; i < 20000; i++) {
		float real = ldexpf((float)oracle_sample(&state, -16777215, 16777215),
				    (int)oracle_between(&state, -60, 4));
		int64_t frac_bits = oracle_between(&state, 0, 40), saturated = 0;
		long double scaled = ldexpl((long double)real, (int)frac_bits), low = floorl(scaled);
		long double rest = scaled - low; /* exact: 64 bits of mantissa hold 24 and their fraction */
		enum npumem_rounding rounding = (enum npumem_rounding)(i % 3 + 1);
		bool even = fmodl(low, 2.0L) == 0.0L;
		bool tie_up = rounding == NPUMEM_UP || (rounding == NPUMEM_NEAREST ? scaled > 0 : !even);
		long double want = rest > 0.5L || (rest == 0.5L && tie_up) ? low + 1 : low;
		bool out = want < INT32_MIN || want > INT32_MAX;
		int64_t got = quantize(real, frac_bits, rounding, INT32_MIN, INT32_MAX, &saturated);
		want = want < INT32_MIN ? INT32_MIN : want > INT32_MAX ? INT32_MAX : want;
		ck_assert(got == (int64_t)want && saturated == out);
	}
}
