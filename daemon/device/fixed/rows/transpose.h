/* Blocks of elements of 1, 2 or 4 bytes, rows becoming columns. */
#ifndef DEVICE_TRANSPOSE_H
#define DEVICE_TRANSPOSE_H

#include <stdint.h>

#include "daemon/device/isa.h"

/* Element r of row c of `to` is element c of row r of `from`, for r below n_rows and c below n_columns. Rows lie
 * from_row and to_row elements apart; the two share no bytes. */
void transpose(enum isa isa, unsigned bytes, const void *from, int64_t from_row, int64_t n_rows, int64_t n_columns,
	       void *to, int64_t to_row);

#endif
