/* Rows against the oracle: every container, shifts at and past the width, lengths around a block, relu limits. */

#include "daemon/device/fixed/requantize.h"
#include "tests/support/oracle.h"
#include "tests/support/test.h"

enum { LENGTH_MAX = 2050 };

static int64_t stored(const void *out, int dtype, int64_t i)
{
	switch (dtype) {
	case NPUMEM_INT8:
	case NPUMEM_FX8:
		return ((const int8_t *)out)[i];
	case NPUMEM_UINT8:
		return ((const uint8_t *)out)[i];
	case NPUMEM_INT16:
	case NPUMEM_FX16:
		return ((const int16_t *)out)[i];
	case NPUMEM_UINT16:
		return ((const uint16_t *)out)[i];
	case NPUMEM_INT32:
		return ((const int32_t *)out)[i];
	default:
		return ((const uint32_t *)out)[i];
	}
}

/* A row through requantize_row64, and through requantize_row32 where `narrow`, must be the oracle's. */
static void check_row(int dtype, int64_t shift, int mode, int64_t n, bool narrow, uint64_t *state)
{
	static int64_t wide[LENGTH_MAX], values[LENGTH_MAX];
	static int32_t values32[LENGTH_MAX];
	static uint32_t out[LENGTH_MAX], out32[LENGTH_MAX];
	struct requantize requantize;
	requantize_init(&requantize, dtype, shift, (enum npumem_rounding)mode);
	int64_t low, high;
	ck_assert(npumem_dtype_range(dtype, &low, &high));
	int64_t end = narrow ? INT32_MAX : INT64_C(1) << 61;
	for (int64_t i = 0; i < n; i++) {
		int64_t spread = end >> oracle_random(state) % 31;
		wide[i] = values[i] = oracle_sample(state, -spread - 1, spread);
		values32[i] = (int32_t)wide[i];
	}
	int64_t saturated = requantize_row64(&requantize, values, n, out);
	int64_t saturated32 = narrow ? requantize_row32(&requantize, values32, n, out32) : saturated;
	int64_t clamped = 0;
	for (int64_t i = 0; i < n; i++) {
		int64_t want = oracle_result(oracle_of(wide[i]), shift, mode, low, high, &clamped);
		ck_assert_msg(stored(out, dtype, i) == want, "%s, mode %d: %lld by %lld is %lld, not %lld",
			      npumem_dtype_name(dtype), mode, (long long)wide[i], (long long)shift,
			      (long long)stored(out, dtype, i), (long long)want);
		if (narrow)
			ck_assert_int_eq(stored(out32, dtype, i), want);
	}
	ck_assert_int_eq(saturated, clamped);
	ck_assert_int_eq(saturated32, clamped);
}

TEST(shifts_and_containers)
{
	static const int dtypes[] = {NPUMEM_INT8,  NPUMEM_UINT8,  NPUMEM_INT16, NPUMEM_UINT16,
				     NPUMEM_INT32, NPUMEM_UINT32, NPUMEM_FX8,	NPUMEM_FX16};
	static const int64_t shifts[] = {-254, -62, -32, -31, -17, -16, -8, -1, 0,  1,	2,
					 15,   30,  31,	 32,  33,  62,	63, 64, 65, 254};
	uint64_t state = 2;
	for (unsigned d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
		for (unsigned s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++)
			for (int mode = 1; mode <= 3; mode++) {
				check_row(dtypes[d], shifts[s], mode, 24, false, &state);
				if (npumem_dtype_bytes(dtypes[d]) <= 2)
					check_row(dtypes[d], shifts[s], mode, 24, true, &state);
			}
}

TEST(lengths_around_a_block)
{
	static const int64_t lengths[] = {0, 1, 1023, 1024, 1025, 2050};
	uint64_t state = 3;
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		check_row(NPUMEM_FX8, 3, NPUMEM_UP, lengths[i], true, &state);
		check_row(NPUMEM_FX16, -2, NPUMEM_UP, lengths[i], false, &state);
	}
}

/* What the limits change is not saturation; a value that both change is. */
TEST(limits_do_not_count)
{
	struct requantize requantize;
	requantize_init(&requantize, NPUMEM_FX8, 0, NPUMEM_UP);
	requantize.limit_low = 0;
	requantize.limit_high = 6;
	int64_t values[] = {-129, -128, -1, 3, 7, 127, 128};
	int32_t values32[] = {-129, -128, -1, 3, 7, 127, 128};
	int8_t out[7], out32[7];
	ck_assert_int_eq(requantize_row64(&requantize, values, 7, out), 2);
	ck_assert_int_eq(requantize_row32(&requantize, values32, 7, out32), 2);
	static const int8_t want[] = {0, 0, 0, 3, 6, 6, 6};
	ck_assert_mem_eq(out, want, sizeof(want));
	ck_assert_mem_eq(out32, want, sizeof(want));
}
