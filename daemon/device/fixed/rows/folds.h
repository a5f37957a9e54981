/* Maxima and sums of elements of 8 and 16 bits, in 32: down columns, along windows of those, and of a whole row.
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

/* Of columns. */
struct fold_window {
	int64_t stride, taps, dilation;
};

/* Each returns how many of n it made: as many as it can, all where it has masks. */
struct fold_functions {
	int64_t (*columns)(const struct fold_rows *rows, unsigned bytes, int64_t n, void *to);
	int64_t (*windows)(const void *columns, unsigned bytes, const struct fold_window *window, int64_t n,
			   void *to);
	int64_t (*across)(const struct fold_rows *rows, int64_t n, int32_t *to);
	/* Of n elements of each piece, those up to the one that it returns. */
	int64_t (*each)(const struct fold_pieces *pieces, int64_t n, int32_t *to);
};

struct folds {
	struct fold_functions of[FOLD_N];
};

/* What nothing is: a sum of no elements is 0, and every element is larger than the largest of none. */
int32_t fold_start(enum fold fold);
/* Element i of `to`, i below n, is column i folded, n_rows >= 1. Containers of `bytes` hold every result: 4, 2 or
 * the elements' own. */
void fold_columns(enum fold fold, enum isa isa, const struct fold_rows *rows, unsigned bytes, int64_t n, void *to);
/* Element i of `to` is element i * stride of the columns and taps - 1 more, each `dilation` after the one before,
 * all of `bytes`; where these are not 4, the stride is 1 or 2. */
void fold_windows(enum fold fold, enum isa isa, const void *columns, unsigned bytes,
		  const struct fold_window *window, int64_t n, void *to);
/* The first n elements of the first row, n >= 1. */
int32_t fold_across(enum fold fold, enum isa isa, const struct fold_rows *rows, int64_t n);

/* to[i] is the first n elements of piece i, n >= 1. */
void fold_each(enum fold fold, enum isa isa, const struct fold_pieces *pieces, int64_t n, int32_t *to);

#endif
