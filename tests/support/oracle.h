/* An oracle for the arithmetic: slow, plain, and of another make than the product, with which it shares no code.
 *
 * Every value is a two's complement integer of 512 bits, shifted one bit at a time and never cut, so that no
 * format, bias shift or sum is out of its reach. Header only, so that any test may use it. */
#ifndef TESTS_SUPPORT_ORACLE_H
#define TESTS_SUPPORT_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

/* Not inlined: under sanitizers that costs the compiler minutes. */
#define ORACLE static __attribute__((noinline, unused))

enum { ORACLE_LIMBS = 16 };

/* Least significant limb first. */
struct oracle {
	uint32_t limb[ORACLE_LIMBS];
};

enum oracle_rounding { ORACLE_CONVERGENT = 1, ORACLE_UP = 2, ORACLE_NEAREST = 3 };

ORACLE struct oracle oracle_of(int64_t x)
{
	struct oracle big;
	for (int i = 0; i < ORACLE_LIMBS; i++) {
		big.limb[i] = (uint32_t)x;
		x = i == 0 ? x / 4294967296 - (x % 4294967296 < 0) : (x < 0 ? -1 : 0);
	}
	return big;
}

ORACLE struct oracle oracle_add(struct oracle a, struct oracle b)
{
	uint64_t carry = 0;
	for (int i = 0; i < ORACLE_LIMBS; i++) {
		carry += (uint64_t)a.limb[i] + b.limb[i];
		a.limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	return a;
}

ORACLE bool oracle_negative(struct oracle a)
{
	return a.limb[ORACLE_LIMBS - 1] >= 0x80000000u;
}

ORACLE struct oracle oracle_negate(struct oracle a)
{
	for (int i = 0; i < ORACLE_LIMBS; i++)
		a.limb[i] = ~a.limb[i];
	return oracle_add(a, oracle_of(1));
}

ORACLE struct oracle oracle_subtract(struct oracle a, struct oracle b)
{
	return oracle_add(a, oracle_negate(b));
}

ORACLE bool oracle_less(struct oracle a, struct oracle b)
{
	return oracle_negative(oracle_subtract(a, b));
}

ORACLE bool oracle_is_zero(struct oracle a)
{
	for (int i = 0; i < ORACLE_LIMBS; i++)
		if (a.limb[i] != 0)
			return false;
	return true;
}

ORACLE struct oracle oracle_multiply(struct oracle a, int64_t by)
{
	struct oracle sum = oracle_of(0);
	bool negative = by < 0;
	uint64_t left = negative ? 0 - (uint64_t)by : (uint64_t)by;
	for (; left != 0; left /= 2) {
		if (left % 2 == 1)
			sum = oracle_add(sum, a);
		a = oracle_add(a, a);
	}
	return negative ? oracle_negate(sum) : sum;
}

ORACLE struct oracle oracle_double(struct oracle a, int64_t times)
{
	for (int64_t i = 0; i < times; i++)
		a = oracle_add(a, a);
	return a;
}

/* floor(a / 2) and what is left. */
ORACLE struct oracle oracle_halve(struct oracle a, unsigned *rest)
{
	*rest = a.limb[0] % 2;
	for (int i = 0; i < ORACLE_LIMBS; i++) {
		uint32_t above = i + 1 < ORACLE_LIMBS ? a.limb[i + 1] : (oracle_negative(a) ? 0xffffffffu : 0);
		a.limb[i] = a.limb[i] / 2 + (above % 2 == 1 ? 0x80000000u : 0);
	}
	return a;
}

/* a / 2^shift, rounded by comparing twice what is left with the divisor; shift < 0 multiplies. */
ORACLE struct oracle oracle_shift(struct oracle a, int64_t shift, int rounding)
{
	if (shift <= 0)
		return oracle_double(a, -shift);
	struct oracle quotient = a;
	unsigned rest;
	for (int64_t i = 0; i < shift; i++)
		quotient = oracle_halve(quotient, &rest);
	struct oracle left = oracle_subtract(a, oracle_double(quotient, shift));
	struct oracle divisor = oracle_double(oracle_of(1), shift);
	struct oracle twice = oracle_add(left, left);
	struct oracle next = oracle_add(quotient, oracle_of(1));
	if (oracle_less(twice, divisor))
		return quotient;
	if (oracle_less(divisor, twice))
		return next;
	if (rounding == ORACLE_UP)
		return next;
	if (rounding == ORACLE_NEAREST)
		return oracle_negative(a) ? quotient : next;
	return quotient.limb[0] % 2 == 0 ? quotient : next;
}

/* Into [low, high]; adds to *clamped where that changed it. */
ORACLE int64_t oracle_clamp(struct oracle a, int64_t low, int64_t high, int64_t *clamped)
{
	if (oracle_less(a, oracle_of(low))) {
		(*clamped)++;
		return low;
	}
	if (oracle_less(oracle_of(high), a)) {
		(*clamped)++;
		return high;
	}
	/* Its magnitude fits 63 bits. */
	bool negative = oracle_negative(a);
	struct oracle magnitude = negative ? oracle_negate(a) : a;
	int64_t value = (int64_t)(magnitude.limb[0] + 4294967296u * (uint64_t)magnitude.limb[1]);
	return negative ? -value : value;
}

/* The accumulator of `bits`: what it holds of the exact `total`; adds to *wrapped where that is not all of it. */
ORACLE struct oracle oracle_wrap(struct oracle total, unsigned bits, int64_t *wrapped)
{
	/* floor((total + 2^(bits - 1)) / 2^bits) */
	struct oracle turns = oracle_add(total, oracle_double(oracle_of(1), bits - 1));
	unsigned rest;
	for (unsigned i = 0; i < bits; i++)
		turns = oracle_halve(turns, &rest);
	if (!oracle_is_zero(turns))
		(*wrapped)++;
	return oracle_subtract(total, oracle_double(turns, bits));
}

/* clamp(R(a * 2^-shift)) in one call. */
ORACLE int64_t oracle_result(struct oracle a, int64_t shift, int rounding, int64_t low, int64_t high,
			     int64_t *clamped)
{
	return oracle_clamp(oracle_shift(a, shift, rounding), low, high, clamped);
}

/* A generator whose sequence is the same everywhere (Knuth's MMIX constants); the state is the caller's. */
ORACLE uint32_t oracle_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* low..high, both included. */
ORACLE int64_t oracle_between(uint64_t *state, int64_t low, int64_t high)
{
	uint64_t wide = (uint64_t)oracle_random(state) << 31 | oracle_random(state);
	return (int64_t)((uint64_t)low + wide % ((uint64_t)high - (uint64_t)low + 1));
}

/* A value of a signed container, where the ends and 0 are as likely as all others together. */
ORACLE int64_t oracle_sample(uint64_t *state, int64_t low, int64_t high)
{
	switch (oracle_random(state) % 8) {
	case 0:
		return low;
	case 1:
		return high;
	case 2:
		return 0;
	case 3:
		return oracle_between(state, -3, 3);
	default:
		return oracle_between(state, low, high);
	}
}

#endif
