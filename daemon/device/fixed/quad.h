/* Dot products of rows of 16-bit elements: the inner loop of convolutions. Sums are exact, as in mac.h. */
#ifndef DEVICE_FIXED_QUAD_H
#define DEVICE_FIXED_QUAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
	QUAD_WIDTH = 4,	     /* rows on the right that share one pass over a row on the left */
	QUAD_LENGTH_STEP = 8 /* a row's length is a multiple of this, so that no vector is left over */
};

struct quad {
	unsigned sum_bytes; /* 4 where the caller's bound on the products proves that they hold every sum; or 8 */
	/* Both sides use all their 16 bits: two products would not fit 32 bits. The right side then comes as two
	 * sets of rows, low bytes and high bytes. */
	bool split;
};

/* Rows on the right: QUAD_WIDTH, or twice as many. */
static inline int64_t quad_right_rows(const struct quad *quad)
{
	return quad->split ? 2 * QUAD_WIDTH : QUAD_WIDTH;
}

/* Writes `value` as element k of row r (of QUAD_WIDTH) of the right side. */
static inline void quad_put_right(const struct quad *quad, int16_t *right, int64_t length, int64_t r, int64_t k,
				  int16_t value)
{
	if (quad->split) {
		right[r * length + k] = value & 0xff;
		right[(r + QUAD_WIDTH) * length + k] = (int16_t)((value - (value & 0xff)) / 256);
	} else {
		right[r * length + k] = value;
	}
}

/* sums[r * n + i] = left row i times right row r; n rows on the left, `length` elements in each row. */
void quad_rows(const struct quad *quad, const int16_t *left, int64_t n, const int16_t *right, int64_t length,
	       void *sums);

#endif
