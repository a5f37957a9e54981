/* Pairs as the points below two lines. */
#include "include/formulas/tap_pairs.h"

/* floor(b / d) + floor((b + s) / d) + … + floor((b + (n - 1) * s) / d), in as many steps as Euclid's algorithm
 * takes of d and s: Graham, Knuth, Patashnik, "Concrete Mathematics", 3.5. n, s, b >= 0, d > 0; the last term has
 * 31 bits.
 */
static int64_t floor_sum(int64_t n, int64_t d, int64_t s, int64_t b)
{
	int64_t sum = 0, sign = 1;
	while (n > 0) {
		sum += sign * (n * (n - 1) / 2 * (s / d) + n * (b / d));
		s %= d;
		b %= d;
		/* Now the terms are columns of points below a line; the rows are those of a smaller sum. */
		int64_t rows = (s * (n - 1) + b) / d;
		sum += sign * rows * n;
		sign = -sign;
		b = d - b + s - 1;
		int64_t rest = d;
		d = s;
		s = rest;
		n = rows;
	}
	return sum;
}

/* Values of i from 0 to n - 1 with a - i * s >= least. */
static int64_t count_from(int64_t n, int64_t a, int64_t s, int64_t least)
{
	int64_t i = a < least ? 0 : (a - least) / s + 1;
	return i < n ? i : n;
}

/* The sum over i from 0 to n - 1 of floor((a - i * s) / d), but no less than 0 and no more than `most`. */
static int64_t clamped_sum(int64_t n, int64_t a, int64_t s, int64_t d, int64_t most)
{
	int64_t all = count_from(n, a, s, most * d), some = count_from(n, a, s, d);
	/* From the last one on backwards the terms rise. */
	return most * all + floor_sum(some - all, d, s, a - (some - 1) * s);
}

int64_t tap_pairs(const struct tap_pairs *axis)
{
	/* Taps up to the last one within the extent, without those before its first element. */
	int64_t to_end = axis->extent - 1 + axis->before + axis->dilation,
		to_start = axis->before + axis->dilation - 1;
	if (!axis->taps)
		return 0;
	return clamped_sum(axis->n, to_end, axis->stride, axis->dilation, axis->taps) -
	       clamped_sum(axis->n, to_start, axis->stride, axis->dilation, axis->taps);
}
