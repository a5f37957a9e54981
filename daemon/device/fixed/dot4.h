/* Dot products of rows of 16-bit elements: the inner loop of convolutions. Sums are exact, as in dot.h. */
#ifndef DEVICE_DOT4_H
#define DEVICE_DOT4_H

#include <stdbool.h>
#include <stdint.h>

enum {
	DOT4_WIDTH = 4,	     /* rows on the right that share one pass over a row on the left */
	DOT4_LENGTH_STEP = 8 /* a row's length is a multiple of this, so that no vector is left over */
};

struct dot4 {
	unsigned sum_bytes; /* 4 where the caller's bound on the products proves that they hold every sum; or 8 */
	/* Both sides use all their 16 bits: two products would not fit 32 bits. The right side then comes as two
	 * sets of rows, low bytes and high bytes. */
	bool split;
};

/* Rows on the right: DOT4_WIDTH, or twice as many. */
static inline int64_t dot4_right_rows(const struct dot4 *dot4)
{
	return dot4->split ? 2 * DOT4_WIDTH : DOT4_WIDTH;
}

/* Writes `value` as element k of row r (of DOT4_WIDTH) of the right side. */
static inline void dot4_put_right(const struct dot4 *dot4, int16_t *right, int64_t length, int64_t r, int64_t k,
				  int16_t value)
{
	if (dot4->split) {
		right[r * length + k] = value & 0xff;
		right[(r + DOT4_WIDTH) * length + k] = (int16_t)((value - (value & 0xff)) / 256);
	} else {
		right[r * length + k] = value;
	}
}

/* sums[r * n + i] += left row i times right row r, for the first `part` of `length` elements of each row; n rows
 * on the left. */
void dot4_rows(const struct dot4 *dot4, const int16_t *left, int64_t n, const int16_t *right, int64_t length,
	       int64_t part, void *sums);

#endif
