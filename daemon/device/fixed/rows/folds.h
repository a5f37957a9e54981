/* Maxima and sums of elements of 8 and 16 bits: in 32, down columns and of a whole row; of the windows of a pool.
 * The caller's bound on the number of elements keeps sums exact: FOLD_TERMS_MAX of them in all.
 *
 * As for rows.h, the scalar functions are the definition; those of other instruction sets are written once, in
 * vectors/folds.c. A new fold is a row of folds.def. */
#ifndef DEVICE_FOLDS_H
#define DEVICE_FOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/isa.h"

enum { FOLD_TERMS_MAX = 1 << 16 }; /* of 16 bits */

enum fold {
#define FOLD(name, NAME, start, of_vectors, of_raw, of_two) FOLD_##NAME,
#include "daemon/device/fixed/rows/folds.def"
#undef FOLD
	FOLD_N
};

/* Elements of a signed type of 1 or 2 bytes, in rows. */
struct fold_rows {
	const void *data;
	unsigned bytes;
	int64_t row; /* from one row to the next, in elements */
	int64_t n_rows;
};

/* The same in pieces of n elements that lie anywhere. */
struct fold_pieces {
	const void *const *data;
	unsigned bytes;
	int64_t n_pieces;
};

enum { FOLD_PAST = 128 }; /* elements of a pool that may be read or written past the last one */

/* Some rows of windows, which are folded down the columns first, then along them. Vectors are always whole, so
 * that all memory has FOLD_PAST elements more. */
struct fold_pool {
	const void *in;		/* rows of wide elements, one behind the other */
	unsigned bytes, width;	/* of an element; of results, and of what they are made in, which holds them all */
	int64_t wide, row_step; /* from one row of windows to the next, in rows */
	int64_t taps_down, dilation_down;
	int64_t taps, stride, dilation; /* along a row */
	int64_t before, after;		/* columns of nothing, beside each row */
	int64_t n_rows, n;		/* windows: rows, and of each */
	void *columns;			/* n_rows of fold_pool_pitch() elements */
	void *to;			/* n_rows * n results */
};

static inline int64_t fold_pool_pitch(const struct fold_pool *pool)
{
	return pool->before + pool->wide + pool->after + FOLD_PAST;
}

/* Each returns how many of n it made: as many as it can, all where it has masks. */
struct fold_functions {
	int64_t (*columns)(const struct fold_rows *rows, int64_t n, int32_t *to);
	int64_t (*across)(const struct fold_rows *rows, int64_t n, int32_t *to);
	/* Of n elements of each piece, those up to the one that it returns. */
	int64_t (*each)(const struct fold_pieces *pieces, int64_t n, int32_t *to);
	void (*pool)(const struct fold_pool *pool); /* all of it */
};

struct folds {
	struct fold_functions of[FOLD_N];
};

/* What nothing is: a sum of no elements is 0, and every element is larger than the largest of none. */
int32_t fold_start(enum fold fold);
/* The same in a container of `bytes`. */
static inline int32_t fold_start_in(int32_t start, unsigned bytes)
{
	int64_t end = (int64_t)1 << (8 * bytes - 1);
	return (int32_t)(start == 0 ? 0 : start < 0 ? -end : end - 1);
}

/* to[i], i below n, is column i folded, n_rows >= 1. */
void fold_columns(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n, int32_t *to);
void fold_pool(enum fold fold, enum isa isa, const struct fold_pool *pool);
/* The first n elements of the first row, n >= 1. */
int32_t fold_across(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n);

/* to[i] is the first n elements of piece i, n >= 1. */
void fold_each(enum fold fold, enum isa isa, const struct fold_pieces *pieces, int64_t n, int32_t *to);

#endif
