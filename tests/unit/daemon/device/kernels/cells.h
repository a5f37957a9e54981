/* The rules of the recurrent kernels written out, for their tests: sums in numbers of 512 bits, tables from
 * tables.h, one element at a time. */
#ifndef TESTS_DEVICE_KERNELS_CELLS_H
#define TESTS_DEVICE_KERNELS_CELLS_H

#include "tests/unit/daemon/device/kernels/calls.h"
#include "tests/unit/daemon/device/kernels/tables.h"

enum { CELLS_STATE_MAX = 16 };
enum { CELLS_NONE = 1, CELLS_TANH, CELLS_SIGM };

struct cells_counts {
	int64_t saturated, wrapped, macs;
};

/* One sum of products of a gate. */
struct cells_sum {
	int64_t value, frac_bits;
};

/* Each sum in its own accumulator, rounded by itself to `frac_bits`; the bias in the first. */
static inline int64_t cells_partial(const struct cells_sum *sums, unsigned n, int64_t bias, int64_t bias_frac_bits,
				    int64_t frac_bits, unsigned bytes, int mode, int64_t *clamped,
				    int64_t *wrapped)
{
	struct oracle total = oracle_of(0);
	for (unsigned i = 0; i < n; i++) {
		struct oracle sum = oracle_of(sums[i].value);
		if (i == 0)
			sum = oracle_add(sum, oracle_double(oracle_of(bias), sums[0].frac_bits - bias_frac_bits));
		sum = oracle_wrap(sum, bytes == 1 ? 32 : 40, wrapped);
		total = oracle_add(total, oracle_shift(sum, sums[i].frac_bits - frac_bits, mode));
	}
	int64_t end = bytes == 1 ? 128 : 32768;
	return oracle_clamp(total, -end, end - 1, clamped);
}

/* Both sums in one accumulator: the first with the bias, moved to the format of the second by `between`. */
static inline int64_t cells_carried(int64_t first, int64_t second, int64_t bias, int64_t bias_shift,
				    int64_t between, int64_t shift, unsigned bytes, int mode, int64_t *clamped,
				    int64_t *wrapped)
{
	int64_t turns = 0, end = bytes == 1 ? 128 : 32768;
	unsigned bits = bytes == 1 ? 32 : 40, rest;
	struct oracle sum = oracle_add(oracle_of(first), oracle_double(oracle_of(bias), bias_shift));
	sum = oracle_wrap(sum, bits, &turns);
	if (between > 0 && bytes == 2)
		for (int64_t i = 0; i < between; i++)
			sum = oracle_halve(sum, &rest);
	else
		sum = oracle_shift(sum, between, mode);
	sum = oracle_wrap(oracle_add(sum, oracle_of(second)), bits, &turns);
	*wrapped += turns > 0;
	return oracle_result(sum, shift, mode, -end, end - 1, clamped);
}

/* clamp(R(a * b * 2^-shift)) */
static inline int64_t cells_product(int64_t a, int64_t b, int64_t shift, unsigned bytes, int mode,
				    int64_t *clamped)
{
	int64_t end = bytes == 1 ? 128 : 32768;
	return oracle_result(oracle_of(a * b), shift, mode, -end, end - 1, clamped);
}

/* a Q.a_frac + b Q.b_frac in Q.frac_bits, rounded once. */
static inline int64_t cells_add(int64_t a, int64_t a_frac, int64_t b, int64_t b_frac, int64_t frac_bits,
				unsigned bytes, int mode, int64_t *clamped)
{
	int64_t most = a_frac > b_frac ? a_frac : b_frac, end = bytes == 1 ? 128 : 32768;
	struct oracle sum =
		oracle_add(oracle_double(oracle_of(a), most - a_frac), oracle_double(oracle_of(b), most - b_frac));
	return oracle_result(sum, most - frac_bits, mode, -end, end - 1, clamped);
}

static inline int64_t cells_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Fills a role with values that leave room: |x| <= 1 / 2^by of the container. */
static inline void cells_sample(struct calls *c, unsigned role, int64_t by, uint64_t *state)
{
	struct kernel_operand *operand = &c->operands[role][0];
	int64_t n = (int64_t)(calls_bytes(operand) / npumem_dtype_bytes(operand->dtype));
	int64_t end = (npumem_dtype_bytes(operand->dtype) == 1 ? 127 : 32767) >> by;
	for (int64_t i = 0; i < n; i++)
		calls_put(c, role, i, by ? oracle_between(state, -end, end) : oracle_sample(state, -end - 1, end));
}

static inline int64_t cells_frac_bits(const struct calls *c, unsigned role)
{
	return c->operands[role][0].frac_bits;
}

/* The sum over k of in[step,k] * weights[row * width + first + k]. */
static inline int64_t cells_dot(const struct calls *c, unsigned weights, int64_t row, int64_t width, int64_t first,
				const int64_t *in, int64_t n)
{
	int64_t sum = 0;
	for (int64_t k = 0; k < n; k++)
		sum += in[k] * calls_get(c, weights, row * width + first + k);
	return sum;
}

#endif
