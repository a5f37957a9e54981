/* Joins of sums in loops that compilers make vectors of, 64 bits for each; rows/sums.c says which formats they
 * take.
 */
#include "daemon/device/fixed/rows/sums.h"

#include "daemon/device/fixed/round.h"
#include "daemon/device/fixed/rows/vectors/vector.h"

#define SUMS_PART static inline __attribute__((always_inline))

enum { SUMS_BLOCK = 128 };

/* In the sums' format. */
SUMS_PART void sums_load_bias(const struct sums_bias *bias, int64_t first, int64_t n, int64_t shift, int64_t *to)
{
	if (!bias->data)
		for (int64_t j = 0; j < n; j++)
			to[j] = 0;
	else if (bias->bytes == 1)
		for (int64_t j = 0; j < n; j++)
			to[j] = ((const int8_t *)bias->data)[first + j] * ((int64_t)1 << shift);
	else
		for (int64_t j = 0; j < n; j++)
			to[j] = ((const int16_t *)bias->data)[first + j] * ((int64_t)1 << shift);
}

/* Whether x leaves an accumulator of `bits`, which holds *held. */
SUMS_PART int64_t sums_hold(int64_t x, unsigned bits, int64_t *held)
{
	*held = (int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits);
	return *held != x;
}

/* round_right() of |x| below 2^62, for 0 < shift <= 62, in fewer steps: what falls off carries into the floor. */
SUMS_PART int64_t sums_round(int64_t x, int64_t shift, enum npumem_rounding rounding)
{
	int64_t half = (int64_t)1 << (shift - 1);
	int64_t more = rounding == NPUMEM_UP	    ? half
		       : rounding == NPUMEM_NEAREST ? half + (x >> 63)
						    : half - 1 + (x >> shift & 1);
	return (x + more) >> shift;
}

SUMS_PART int64_t sums_right(int64_t x, int64_t shift, enum npumem_rounding rounding)
{
	return shift > 0 ? sums_round(x, shift, rounding) : x;
}

/* totals[j] += x[j] + bias[j], as the accumulator holds it, rounded. */
SUMS_PART void sums_add(enum npumem_rounding rounding, const int64_t *x, const int64_t *bias, int64_t n,
			unsigned bits, int64_t shift, int64_t *totals, int64_t *wrapped)
{
	int64_t outside = 0;
	if (shift == 0) {
		for (int64_t j = 0; j < n; j++) {
			int64_t held;
			outside += sums_hold(x[j] + bias[j], bits, &held);
			totals[j] += held;
		}
	} else {
		for (int64_t j = 0; j < n; j++) {
			int64_t held;
			outside += sums_hold(x[j] + bias[j], bits, &held);
			totals[j] += sums_round(held, shift, rounding);
		}
	}
	*wrapped += outside;
}

SUMS_PART void sums_store(const int64_t *x, int64_t n, int64_t low, int64_t high, unsigned bytes, void *out,
			  int64_t first, int64_t *saturated)
{
	int64_t outside = 0;
	for (int64_t j = 0; j < n; j++)
		outside += (x[j] < low) | (x[j] > high);
	*saturated += outside;
	for (int64_t j = 0; j < n; j++) {
		int64_t y = x[j] < low ? low : x[j] > high ? high : x[j];
		if (bytes == 1)
			((int8_t *)out)[first + j] = (int8_t)y;
		else
			((int16_t *)out)[first + j] = (int16_t)y;
	}
}

static void multi_run(const struct multi_sum *multi, const int64_t *sums, int64_t step,
		      const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	static const int64_t none[SUMS_BLOCK];
	for (int64_t j = 0; j < n; j += SUMS_BLOCK) {
		int64_t count = n - j < SUMS_BLOCK ? n - j : SUMS_BLOCK;
		int64_t first[SUMS_BLOCK], totals[SUMS_BLOCK] = {0};
		sums_load_bias(bias, j, count, multi->bias_shift, first);
		for (unsigned i = 0; i < multi->n; i++)
			ROUND_BY_MODE(multi->rounding, sums_add, sums + i * step + j, i == 0 ? first : none, count,
				      multi->bits, multi->shifts[i], totals, &counts->wrapped);
		sums_store(totals, count, multi->low, multi->high, multi->bits == 32 ? 1 : 2, out, j,
			   &counts->saturated);
	}
}

/* Of each output: whether a step left the accumulator, as 1 in wrapped[j]. */
SUMS_PART void sums_rescale(enum npumem_rounding rounding, const struct rescaled_sum *r, const int64_t *first,
			    const int64_t *second, const int64_t *bias, int64_t n, int64_t *to, int64_t *wrapped)
{
	int64_t outside = 0, between = r->between, shift = r->result.shift, left = between < 0 ? -between : 0;
	bool rounds = r->bits == 32;
	for (int64_t j = 0; j < n; j++) {
		int64_t held, out = sums_hold(first[j] + bias[j], r->bits, &held);
		if (between > 0)
			held = rounds ? sums_round(held, between, rounding) : held >> between;
		out |= sums_hold(held * ((int64_t)1 << left) + second[j], r->bits, &held);
		outside += out;
		to[j] = sums_right(held, shift, rounding);
	}
	*wrapped += outside;
}

static void rescaled_run(const struct rescaled_sum *rescaled, const int64_t *sums, int64_t step,
			 const struct sums_bias *bias, int64_t n, void *out, struct sums_counts *counts)
{
	const struct requantize *result = &rescaled->result;
	for (int64_t j = 0; j < n; j += SUMS_BLOCK) {
		int64_t count = n - j < SUMS_BLOCK ? n - j : SUMS_BLOCK;
		int64_t first[SUMS_BLOCK], values[SUMS_BLOCK];
		sums_load_bias(bias, j, count, rescaled->bias_shift, first);
		ROUND_BY_MODE(result->rounding, sums_rescale, rescaled, sums + j, sums + step + j, first, count,
			      values, &counts->wrapped);
		sums_store(values, count, result->low, result->high, result->bytes, out, j, &counts->saturated);
	}
}

const struct sums_functions VECTOR_NAME(sums) = {multi_run, rescaled_run};
