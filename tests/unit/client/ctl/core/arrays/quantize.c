#include <math.h>

#include "client/ctl/core/arrays/stream.h"
#include "tests/support/test.h"

static int64_t saturated;

static int64_t fx16(double real, int64_t frac_bits, int rounding)
{
	saturated = 0;
	return quantize_one(real, frac_bits, rounding, INT16_MIN, INT16_MAX, &saturated);
}

/* The seed's own examples ("Data Format Conversion"). */
TEST(the_seeds_examples)
{
	ck_assert_int_eq(fx16(0.85, 7, NPUMEM_NEAREST), 109);
	ck_assert_int_eq(fx16(-1.09, 10, NPUMEM_NEAREST), -1116);
	int16_t value = 5448;
	float real;
	quantize_back(&value, 1, NPUMEM_FX16, 15, &real);
	ck_assert_float_eq(real, 0.166259765625f);
	value = -1116;
	quantize_back(&value, 1, NPUMEM_FX16, 10, &real);
	ck_assert_float_eq(real, -1.08984375f);
	/* 0x20 in Q.10 is 0.03125. */
	int8_t small = 0x20;
	quantize_back(&small, 1, NPUMEM_FX8, 10, &real);
	ck_assert_float_eq(real, 0.03125f);
}

TEST(ties)
{
	static const struct {
		double real;
		int convergent, up, nearest;
	} rows[] = {
		{0.5, 0, 1, 1},
		{1.5, 2, 2, 2},
		{2.5, 2, 3, 3},
		{-0.5, 0, 0, -1},
		{-1.5, -2, -1, -2},
		{-2.5, -2, -2, -3},
		{0.49999999999999994, 0, 0, 0},
		{-0.49999999999999994, 0, 0, 0},
		{0.75, 1, 1, 1},
		{-0.75, -1, -1, -1},
		{1e-300, 0, 0, 0},
		{-1e-300, 0, 0, 0},
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(fx16(rows[i].real, 0, NPUMEM_CONVERGENT), rows[i].convergent);
		ck_assert_int_eq(fx16(rows[i].real, 0, NPUMEM_UP), rows[i].up);
		ck_assert_int_eq(fx16(rows[i].real, 0, NPUMEM_NEAREST), rows[i].nearest);
	}
}

TEST(saturation_is_counted)
{
	ck_assert_int_eq(fx16(32767.4, 0, NPUMEM_NEAREST), 32767);
	ck_assert_int_eq(saturated, 0);
	ck_assert_int_eq(fx16(32767.5, 0, NPUMEM_CONVERGENT), 32767);
	ck_assert_int_eq(saturated, 1);
	ck_assert_int_eq(fx16(-32768.5, 0, NPUMEM_CONVERGENT), -32768);
	ck_assert_int_eq(saturated, 0); /* a tie to the even one, which fits */
	ck_assert_int_eq(fx16(-32768.5, 0, NPUMEM_NEAREST), -32768);
	ck_assert_int_eq(saturated, 1);
	ck_assert_int_eq(fx16(INFINITY, 127, NPUMEM_UP), 32767);
	ck_assert_int_eq(fx16(-1e308, 127, NPUMEM_UP), -32768);
	ck_assert_int_eq(saturated, 1);
	ck_assert_int_eq(fx16(ldexp(1, -127), 127, NPUMEM_UP), 1);
	ck_assert_int_eq(saturated, 0);
}

TEST(arrays)
{
	const float floats[] = {1.0f, -1.0f, 0.5f};
	const double doubles[] = {0.25, NAN};
	int8_t bytes[3];
	int64_t count = 0;
	size_t nan_at = 99;
	ck_assert_int_eq(
		quantize_array(floats, false, 3, NPUMEM_FX8, 7, NPUMEM_CONVERGENT, bytes, &count, &nan_at), 0);
	ck_assert_int_eq(bytes[0], 127);
	ck_assert_int_eq(bytes[1], -128);
	ck_assert_int_eq(bytes[2], 64);
	ck_assert_int_eq(count, 1);
	ck_assert_int_ne(
		quantize_array(doubles, true, 2, NPUMEM_FX8, 7, NPUMEM_CONVERGENT, bytes, &count, &nan_at), 0);
	ck_assert_uint_eq(nan_at, 1);
}

TEST(back_is_exact)
{
	int16_t values[] = {INT16_MIN, -1, 0, 1, INT16_MAX};
	float reals[5];
	for (int frac_bits = 0; frac_bits <= 127; frac_bits++) {
		quantize_back(values, 5, NPUMEM_FX16, frac_bits, reals);
		for (unsigned i = 0; i < 5; i++)
			ck_assert_int_eq(fx16((double)reals[i], frac_bits, NPUMEM_UP), values[i]);
	}
}
