/* Bias, wrap and finish of rows of sums. Counting costs nothing where a bound on the operands proves that no sum
 * can leave the accumulator; everywhere else the exact total decides. */
#include "daemon/device/fixed/accumulator.h"

#include <assert.h>

#include "daemon/device/fixed/multiversion.h"

enum { ACCUMULATOR_BLOCK = 256 };

static int64_t low_bits(int64_t x, unsigned bits)
{
	return (int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits);
}

int64_t accumulator_total(int64_t sum, int64_t bias, int64_t shift, unsigned bits, int64_t *wrapped)
{
	int64_t value;
	bool in_range;
	if (shift < bits) {
		int64_t total = sum + bias * ((int64_t)1 << shift);
		value = low_bits(total, bits);
		in_range = value == total;
	} else {
		/* The bias has no bit inside the accumulator. sum = value + high * 2^bits, so the total is in
		 * range where the bias cancels `high`, which has less than 32 bits. */
		value = low_bits(sum, bits);
		int64_t high = (sum - value) >> bits;
		int64_t count = shift - bits;
		in_range = bias == 0 ? high == 0 : count < 32 && high == -bias * ((int64_t)1 << count);
	}
	*wrapped += !in_range;
	return value;
}

void accumulator_init(struct accumulator *accumulator, unsigned data_bytes, unsigned weight_bytes,
		      int64_t n_products, int64_t bias_shift, const struct requantize *result)
{
	assert(n_products >= 0 && n_products <= ACCUMULATOR_PRODUCTS_MAX);
	assert(bias_shift >= 0 && bias_shift <= ACCUMULATOR_BIAS_SHIFT_MAX);
	unsigned bits = data_bytes == 1 ? 32 : 40;
	int64_t most = ((int64_t)1 << (bits - 1)) - 1;
	/* All-minimum operands give the largest sum. */
	int64_t products = n_products << (8 * data_bytes - 1 + 8 * weight_bytes - 1);
	int64_t bias = bias_shift < bits ? (int64_t)1 << (8 * weight_bytes - 1 + bias_shift) : most;
	*accumulator = (struct accumulator){
		.bits = bits,
		.sum_bytes = data_bytes == 1 && products <= INT32_MAX ? 4 : 8,
		.cannot_wrap = bias < most && products <= most - bias,
		.bias_shift = bias_shift,
		.result = *result,
	};
}

/* One bias for all is a loop of its own, which compilers vectorize. */
#define ADD_BIAS(name, type)                                                                                      \
	static void name(type *sums, int64_t n, const int32_t *bias, int64_t bias_step, unsigned shift)           \
	{                                                                                                         \
		type unit = (type)1 << shift, one = bias[0] * unit;                                               \
		for (int64_t j = 0; j < n && bias_step == 0; j++)                                                 \
			sums[j] += one;                                                                           \
		for (int64_t j = 0; j < n && bias_step != 0; j++)                                                 \
			sums[j] += bias[j * bias_step] * unit;                                                    \
	}
ADD_BIAS(add_bias32, int32_t)
ADD_BIAS(add_bias64, int64_t)

/* Adds a bias to sums of 32 bits as an accumulator of 32 does, and returns how many wrapped: those that have no
 * room for it. */
MULTIVERSION_PART int64_t wrapping(int32_t *sums, int64_t n, int64_t bias)
{
	int64_t least = INT32_MIN - bias, most = INT32_MAX - bias, wrapped = 0;
	bool all = least > INT32_MAX || most < INT32_MIN;
	int32_t low = least < INT32_MIN ? INT32_MIN : (int32_t)least;
	int32_t high = most > INT32_MAX ? INT32_MAX : (int32_t)most;
	for (int64_t i = 0; i < n; i += ACCUMULATOR_BLOCK) {
		int32_t *block = sums + i, outside = 0, count = (int32_t)(n - i);
		count = n - i < ACCUMULATOR_BLOCK ? count : ACCUMULATOR_BLOCK;
		for (int32_t j = 0; j < count; j++) {
			outside += (block[j] < low) | (block[j] > high);
			block[j] = (int32_t)((uint32_t)block[j] + (uint32_t)bias);
		}
		wrapped += outside;
	}
	return all ? n : wrapped;
}
static int64_t add_wrapping(int32_t *sums, int64_t n, int64_t bias);
MULTIVERSION(int64_t, add_wrapping, (int32_t * sums, int64_t n, int64_t bias), wrapping, (sums, n, bias))

/* Where a sum may leave the accumulator: through exact totals, a block at a time. */
static void finish_exact(const struct accumulator *a, const void *sums, int64_t n, const int32_t *bias,
			 int64_t bias_step, void *out, int64_t *saturated, int64_t *wrapped)
{
	int64_t values[ACCUMULATOR_BLOCK];
	for (int64_t j = 0; j < n; j += ACCUMULATOR_BLOCK) {
		int64_t count = n - j < ACCUMULATOR_BLOCK ? n - j : ACCUMULATOR_BLOCK;
		for (int64_t i = 0; i < count; i++) {
			int64_t sum = a->sum_bytes == 4 ? ((const int32_t *)sums)[j + i]
							: ((const int64_t *)sums)[j + i];
			int64_t b = bias ? bias[(j + i) * bias_step] : 0;
			values[i] = accumulator_total(sum, b, a->bias_shift, a->bits, wrapped);
		}
		*saturated += requantize_row64(&a->result, values, count, (uint8_t *)out + j * a->result.bytes);
	}
}

void accumulator_finish(const struct accumulator *accumulator, void *sums, int64_t n, const int32_t *bias,
			int64_t bias_step, void *out, int64_t *saturated, int64_t *wrapped)
{
	unsigned shift = (unsigned)accumulator->bias_shift;
	assert(!bias || !accumulator->cannot_wrap || shift < accumulator->bits);
	bool narrow = accumulator->bits == 32 && accumulator->sum_bytes == 4 && shift < 32;
	if (!accumulator->cannot_wrap && narrow && (!bias || bias_step == 0)) {
		*wrapped += add_wrapping(sums, n, bias ? bias[0] * ((int64_t)1 << shift) : 0);
		*saturated += requantize_row32(&accumulator->result, sums, n, out);
	} else if (!accumulator->cannot_wrap) {
		finish_exact(accumulator, sums, n, bias, bias_step, out, saturated, wrapped);
	} else if (accumulator->sum_bytes == 4) {
		if (bias)
			add_bias32(sums, n, bias, bias_step, shift);
		*saturated += requantize_row32(&accumulator->result, sums, n, out);
	} else {
		if (bias)
			add_bias64(sums, n, bias, bias_step, shift);
		*saturated += requantize_row64(&accumulator->result, sums, n, out);
	}
}
