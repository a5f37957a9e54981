/* Micro-kernels: the innermost loops, one set of functions for each instruction set; implementations.def lists
 * them.
 *
 * Features are packed into lines of steps: a step is 4 bytes, the values of one pixel in 4 channels of 8 bits or 2
 * of 16 bits ("terms"). Pixels of a plane are one flat line over rows that are a little longer than the feature's,
 * so that a tap of a window is a constant distance. A sum is then, for a row (an output channel) and a column (a
 * pixel), over all steps k: terms at data + offsets[k] + 4 * column, times weights at ukernel_weight(). */
#ifndef DEVICE_UKERNEL_H
#define DEVICE_UKERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/implementations.h"

enum {
	UKERNEL_ROWS = 6, /* of micro-kernels that keep their sums in vectors */
	UKERNEL_ROWS_MAX = 32,
	UKERNEL_COLUMNS = 64,
	UKERNEL_VECTOR = 16, /* columns come in multiples of this */
	UKERNEL_STEP_BYTES = 4,
	UKERNEL_STEPS_MAX = 8192, /* of one call: some ten microseconds */
	UKERNEL_TERMS_MAX = 4,
	/* Of a block whose rows are pixels. */
	UKERNEL_PIXELS = 9,
	UKERNEL_OUTPUTS = 48, /* in multiples of UKERNEL_VECTOR */
	/* Of sums that come in parts. */
	UKERNEL_DROP = 8,
	UKERNEL_PART = UKERNEL_ROWS * UKERNEL_COLUMNS,
	UKERNEL_PARTS_MAX = UKERNEL_OUTPUTS / UKERNEL_ROWS,
};

/* Up to UKERNEL_COLUMNS pixels of a flat line. */
struct ukernel_strip {
	uint64_t real; /* bit j: column j is an output; others lie between rows */
	unsigned n_columns, n_real;
};

/* What a store makes of sums: x + total[row], rounded to the right, saturated, limited. */
struct ukernel_result {
	const struct requantize *requantize; /* 0 <= shift <= 30 for sums of 32 bits, <= 62 for those of 64 */
	const int64_t *totals;		     /* of each row */
	uint8_t *const *to; /* of each row: `at` bytes behind it goes the first real column, then the next ones */
	int64_t at;
	bool is_small; /* as ukernel_is_small */
};

/* Whether sums of this magnitude, with half a unit of the result, are below 2^22, half of what floats count in
 * ones, and their results fit 16 bits. */
static inline bool ukernel_is_small(const struct requantize *requantize, int64_t most)
{
	int64_t shift = requantize->shift;
	return shift >= 0 && shift <= 22 && most + (INT64_C(1) << shift >> 1) < INT64_C(1) << 22 &&
	       most >> shift < INT16_MAX;
}

/* Rows, one after the other, of which the first begins with its element `first`; in elements. */
struct ukernel_rows {
	int64_t width, first;
	int64_t step, way; /* from one element to the next, from one row to the next */
};

/* A block whose rows are pixels, any of a plane. The sum of row r and column c (an output channel) is start[c] +
 * over steps k: terms at data + offsets[k] + at[r], times weights at 4 * (k * n_columns + c); it goes to
 * sums[to[r] * UKERNEL_OUTPUTS + c]. Steps come in runs. */
struct ukernel_pixels {
	const uint32_t *offsets;
	const uint8_t *data, *weights;
	const int32_t *start;	      /* 64-byte aligned */
	int64_t n_runs, n_steps, way; /* steps of a run, and from one run's first to the next one's */
	const uint32_t *at, *to;
	unsigned rows;	    /* 1 to UKERNEL_PIXELS */
	unsigned n_columns; /* a multiple of UKERNEL_VECTOR up to UKERNEL_OUTPUTS */
};

struct ukernel {
	const char *name;
	unsigned n_terms;      /* of a step: 4 or 2 */
	unsigned weight_bytes; /* as packed: 1 or 2; by bytes 1 */
	unsigned rows;	       /* most rows of a block */
	unsigned segment_min;  /* steps: to widen the sums of fewer takes longer than twice the products */
	unsigned speed;	       /* products in half a nanosecond, at least, of many rows */
	/* Steps come in whole groups of so many, a power of two, whose data lies at one distance from each other
	 * and a row's weights side by side. Steps that fill up the last one have weights of 0 and any data. */
	unsigned depth;
	/* 16-bit terms come apart: the first half of a group of steps has their low bytes, as 0 to 255, the other
	 * the high ones, of data and of weights. */
	bool by_bytes;
	/* Data is packed with its sign bit turned, as 0 to 255: a sum has 128 times the sum of the weights too
	 * much. */
	bool unsigned_data;

	/* NULL: block() reads weights as they are put. Else it is called for all steps at once, UKERNEL_STEPS_MAX
	 * at most, and this makes what it reads: in ukernel_order_bytes() and twice the bytes of a block's
	 * weights, in whose end they are put. */
	void (*arrange)(int64_t n_steps, unsigned rows, uint8_t *block);

	/* to[y * to_row + x] = from[y * from_row + x * step] for y < n_rows, x < n, elements of `bytes` (1, 2),
	 * rows in elements. Reads no other byte; writes no other but, between two rows, zeros. */
	void (*spread)(unsigned bytes, const void *from, int64_t from_row, int64_t step, void *to, int64_t to_row,
		       int64_t n_rows, int64_t n);
	/* n elements that lie side by side into rows that begin at `to`. Writes no other byte. */
	void (*scatter)(unsigned bytes, const void *from, int64_t n, const struct ukernel_rows *rows, void *to);
	/* n elements of `bytes` of each of n_terms lines into n steps, and on with zeros to a multiple of
	 * UKERNEL_COLUMNS; by bytes to one of UKERNEL_VECTOR, and the high ones `high_off` bytes behind the low
	 * ones. Reads no other byte. */
	void (*pack)(unsigned bytes, const void *const *lines, int64_t n, int64_t high_off, uint8_t *to);
	/* sums[row * UKERNEL_COLUMNS + column] for `rows`, 1 to the most, and n_columns rounded up to
	 * UKERNEL_VECTOR; sums and, where steps come in groups, weights are 64-byte aligned. Wraps. NULL: there is
	 * block64, and nothing that is made of sums of 32 bits. */
	void (*block)(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
		      unsigned rows, unsigned n_columns, int32_t *sums);
	/* The other way round: a row is a pixel, whose terms are broadcast, and weights are vectors of output
	 * channels. Wraps. All sums are 64-byte aligned. */
	void (*pixels)(const struct ukernel_pixels *block, int32_t *sums);
	/* to[column * UKERNEL_COLUMNS + i] = sums[i * UKERNEL_OUTPUTS + column] for i < n <= UKERNEL_COLUMNS. Both
	 * have room for UKERNEL_COLUMNS * UKERNEL_OUTPUTS, of which what is behind n may be read and written. */
	void (*turn)(const int32_t *sums, unsigned n, unsigned n_columns, int32_t *to);
	/* wide = (first ? 0 : wide) + sums, exactly, for up to UKERNEL_STEPS_MAX steps of any data and weights. */
	void (*block64)(const uint32_t *offsets, int64_t n_steps, const uint8_t *data, const uint8_t *weights,
			unsigned rows, unsigned n_columns, bool first, int64_t *wide);
	/* wide = (first ? 0 : wide) + sums * 2^shift, of as many columns. */
	void (*widen)(const int32_t *sums, unsigned rows, unsigned n_columns, unsigned shift, bool first,
		      int64_t *wide);
	/* Sums of 32 and of 64 bits to elements; how many were saturated. NULL: fixed/ does it, by rows. No sum,
	 * with half a unit of its result, leaves 32 or 64 bits. */
	int64_t (*store32)(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
			   const int32_t *sums);
	/* The same of sums that come in several: at sums + i * UKERNEL_PART there are n_high whose 256-fold and
	 * n_low which are as they are. All with the total leave no 32 bits in units of 2^UKERNEL_DROP, from which
	 * the shift is counted; it is 1 at least. */
	int64_t (*store_parts)(const struct ukernel_result *result, const struct ukernel_strip *strip,
			       unsigned rows, const int32_t *sums, int64_t n_high, int64_t n_low);
	int64_t (*store64)(const struct ukernel_result *result, const struct ukernel_strip *strip, unsigned rows,
			   const int64_t *sums);
};

/* Where a row's weights of step k lie, in bytes from those of row 0 of step 0, in a block of `rows`. */
static inline int64_t ukernel_weight(const struct ukernel *ukernel, int64_t k, int64_t rows, int64_t row)
{
	int64_t depth = ukernel->depth;
	int shift = __builtin_ctz(ukernel->depth);
	return ((((k >> shift) * rows + row) << shift) + (k & (depth - 1))) * UKERNEL_STEP_BYTES;
}

/* What says in front of arranged weights in which order steps are. */
static inline int64_t ukernel_order_bytes(int64_t n_steps)
{
	return (int64_t)sizeof(uint32_t) + (n_steps + 1) / 2 * 2 * (int64_t)sizeof(uint16_t);
}

/* Steps of n packed lines, each of n_terms, with those that fill up a group. */
static inline int64_t ukernel_whole(const struct ukernel *ukernel, int64_t n)
{
	return ((n << ukernel->by_bytes) + ukernel->depth - 1) & -(int64_t)ukernel->depth;
}

/* Whether more than half of those fill up: single steps take no longer then, and less room. */
static inline bool ukernel_is_wasteful(const struct ukernel *ukernel, int64_t n)
{
	return ukernel_whole(ukernel, n) > 2 * (n << ukernel->by_bytes);
}

/* The step of packed line i; of its low bytes, where those of the high ones are ukernel_high() steps on. */
static inline int64_t ukernel_step(const struct ukernel *ukernel, int64_t i)
{
	return ukernel->by_bytes ? 2 * i - (i & (ukernel->depth / 2 - 1)) : i;
}
static inline int64_t ukernel_high(const struct ukernel *ukernel)
{
	return ukernel->depth / 2;
}

/* The other way: the packed line of step k, and whether that is its high bytes'. */
static inline int64_t ukernel_line(const struct ukernel *ukernel, int64_t k)
{
	int64_t depth = ukernel->depth;
	return ukernel->by_bytes ? (k & -depth) / 2 + (k & (depth / 2 - 1)) : k;
}
static inline bool ukernel_is_high(const struct ukernel *ukernel, int64_t k)
{
	return ukernel->by_bytes && (k & ukernel_high(ukernel));
}

/* The best for `type` with the instructions of `isa`. Those of pixels have nothing but `pixels` and `turn`,
 * and go with one that packs as they do; NULL: there is none. */
const struct ukernel *ukernel_choose(enum ukernel_type type, enum isa isa);
/* The same of those whose steps come singly, which there is for all other types. */
const struct ukernel *ukernel_choose_single(enum ukernel_type type, enum isa isa);

#endif
