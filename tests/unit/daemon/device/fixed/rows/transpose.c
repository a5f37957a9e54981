/* Every pair of extents around the squares, for each size of an element; nothing else is written. */
#include "daemon/device/fixed/rows/transpose.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/test.h"

enum { EXTENT_MAX = 70, GAP = 3, FILLER = 0x5a };

static void check_one(enum isa isa, unsigned bytes, int64_t n_rows, int64_t n_columns)
{
	int64_t from_row = n_columns + GAP, to_row = n_rows + GAP;
	uint8_t *from = malloc((size_t)(n_rows * from_row) * bytes),
		*to = malloc((size_t)(n_columns * to_row) * bytes);
	for (int64_t i = 0; i < n_rows * from_row * bytes; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, FILLER, (size_t)(n_columns * to_row) * bytes);
	transpose(isa, bytes, from, from_row, n_rows, n_columns, to, to_row);
	for (int64_t c = 0; c < n_columns; c++) {
		for (int64_t r = 0; r < n_rows; r++)
			ck_assert(
				!memcmp(to + (c * to_row + r) * bytes, from + (r * from_row + c) * bytes, bytes));
		for (int64_t i = 0; i < GAP * bytes; i++)
			ck_assert_int_eq(to[(c * to_row + n_rows) * bytes + i], FILLER);
	}
	free(from);
	free(to);
}

TEST(every_tail)
{
	for (unsigned bytes = 1; bytes <= 4; bytes *= 2)
		for (int64_t r = 1; r <= EXTENT_MAX; r++)
			for (int64_t c = 1; c <= EXTENT_MAX; c += r % 3 + 1)
				for (int isa = ISA_SCALAR; isa < ISA_N; isa = isa_next(isa))
					check_one((enum isa)isa, bytes, r, c);
}
