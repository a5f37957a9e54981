/* Rows of values into containers. Each step is its own plain loop over a block that stays in the first cache, with
 * the rounding mode as a constant, so that compilers vectorize it. */
#include "daemon/device/fixed/requantize.h"

#include <assert.h>

#include "daemon/device/fixed/multiversion.h"
#include "daemon/device/fixed/round.h"

enum { REQUANTIZE_BLOCK = 1024 };

void requantize_init(struct requantize *requantize, int dtype, int64_t shift, enum npumem_rounding rounding)
{
	*requantize =
		(struct requantize){.shift = shift, .rounding = rounding, .bytes = npumem_dtype_bytes(dtype)};
	bool has_range = npumem_dtype_range(dtype, &requantize->low, &requantize->high);
	assert(has_range);
	(void)has_range;
	requantize->limit_low = requantize->low;
	requantize->limit_high = requantize->high;
}

MULTIVERSION_PART void right64(enum npumem_rounding rounding, int64_t *values, int64_t n, int64_t shift)
{
	for (int64_t i = 0; i < n; i++)
		values[i] = round_right(values[i], shift, rounding);
}

MULTIVERSION_PART void right32(enum npumem_rounding rounding, int32_t *values, int64_t n, unsigned shift)
{
	for (int64_t i = 0; i < n; i++)
		values[i] = round_right32(values[i], shift, rounding);
}

MULTIVERSION_PART void shift64(const struct requantize *r, int64_t *values, int64_t n)
{
	if (r->shift < 0) {
		for (int64_t i = 0; i < n; i++)
			values[i] = round_left(values[i], -r->shift, r->low, r->high);
	} else if (r->shift > 0) {
		ROUND_BY_MODE(r->rounding, right64, values, n, r->shift);
	}
}

MULTIVERSION_PART void shift32(const struct requantize *r, int32_t *values, int64_t n)
{
	if (r->shift < 0) {
		for (int64_t i = 0; i < n; i++)
			values[i] = (int32_t)round_left(values[i], -r->shift, r->low, r->high);
	} else if (r->shift > 31) {
		for (int64_t i = 0; i < n; i++)
			values[i] = (int32_t)round_right(values[i], r->shift, r->rounding);
	} else if (r->shift > 0) {
		ROUND_BY_MODE(r->rounding, right32, values, n, (unsigned)r->shift);
	}
}

/* Saturates, limits and stores: the limits are within the container, so they do for both. Two's complement: the
 * unsigned store has the signed container's bits. */
#define STORE(name, value_type, stored_type)                                                                      \
	MULTIVERSION_PART int64_t name(const struct requantize *r, const value_type *restrict values, int64_t n,  \
				       stored_type *restrict out)                                                 \
	{                                                                                                         \
		value_type low = (value_type)r->low, high = (value_type)r->high;                                  \
		value_type limit_low = (value_type)r->limit_low, limit_high = (value_type)r->limit_high;          \
		value_type changed = 0;                                                                           \
		for (int64_t i = 0; i < n; i++) {                                                                 \
			value_type x = values[i];                                                                 \
			changed += (x < low) | (x > high);                                                        \
			value_type y = x < limit_low ? limit_low : x;                                             \
			out[i] = (stored_type)(y > limit_high ? limit_high : y);                                  \
		}                                                                                                 \
		return changed;                                                                                   \
	}
STORE(store64_8, int64_t, uint8_t)
STORE(store64_16, int64_t, uint16_t)
STORE(store64_32, int64_t, uint32_t)
STORE(store32_8, int32_t, uint8_t)
STORE(store32_16, int32_t, uint16_t)

MULTIVERSION_PART int64_t row64(const struct requantize *requantize, int64_t *values, int64_t n, void *out)
{
	int64_t saturated = 0;
	for (int64_t i = 0; i < n; i += REQUANTIZE_BLOCK) {
		int64_t count = n - i < REQUANTIZE_BLOCK ? n - i : REQUANTIZE_BLOCK;
		shift64(requantize, values + i, count);
		if (requantize->bytes == 1)
			saturated += store64_8(requantize, values + i, count, (uint8_t *)out + i);
		else if (requantize->bytes == 2)
			saturated += store64_16(requantize, values + i, count, (uint16_t *)out + i);
		else
			saturated += store64_32(requantize, values + i, count, (uint32_t *)out + i);
	}
	return saturated;
}
MULTIVERSION(int64_t, requantize_row64,
	     (const struct requantize *requantize, int64_t *values, int64_t n, void *out), row64,
	     (requantize, values, n, out))

MULTIVERSION_PART int64_t row32(const struct requantize *requantize, int32_t *values, int64_t n, void *out)
{
	assert(requantize->bytes <= 2);
	int64_t saturated = 0;
	for (int64_t i = 0; i < n; i += REQUANTIZE_BLOCK) {
		int64_t count = n - i < REQUANTIZE_BLOCK ? n - i : REQUANTIZE_BLOCK;
		shift32(requantize, values + i, count);
		if (requantize->bytes == 1)
			saturated += store32_8(requantize, values + i, count, (uint8_t *)out + i);
		else
			saturated += store32_16(requantize, values + i, count, (uint16_t *)out + i);
	}
	return saturated;
}
MULTIVERSION(int64_t, requantize_row32,
	     (const struct requantize *requantize, int32_t *values, int64_t n, void *out), row32,
	     (requantize, values, n, out))
