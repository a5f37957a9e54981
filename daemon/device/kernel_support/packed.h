/* Packed integers: int8, uint8, int16 and uint16, without frac_bits, by the rules that were measured on the
 *vendor's model. Roles in1, in2, acc and out, of which a kernel has in1, out and some; one without in2 has a
 *constant in its place (value=, of the type value_dtype=). All operands have one shape; results are shifted right
 *by rshift=, rounding half toward +infinity whatever the device's default is, and saturated to out's own type.
 *
 * A kernel walks over blocks of widened elements:
 *
 *	for (packed_begin(&b, call); packed_next(&b); packed_store(&b))
 *		for (int64_t i = 0; i < b.n; i++)
 *			b.values[i] = b.in1[i] … b.in2[i]; */
#ifndef DEVICE_PACKED_H
#define DEVICE_PACKED_H

#include "daemon/device/fixed/requantize.h"
#include "daemon/device/operations/kernel.h"

enum { PACKED_BLOCK = 256, PACKED_NONE = -1 };

/* Where the operands of a call are. */
struct packed {
	int in1, in2, acc, out; /* roles, by their places in the row; PACKED_NONE where it has none */
	int in2_dtype;		/* of the second operand, tensor or constant; 0 for a constant's default */
	int64_t value;
};
/* Its choices were checked. */
void packed_read(const struct kernel_call *call, struct packed *packed);

struct packed_blocks {
	struct kernel_call *call;
	struct packed packed;
	struct requantize requantize;
	int64_t first, n, end; /* the block is [first, first + n) of `end` elements */
	int32_t in1[PACKED_BLOCK], in2[PACKED_BLOCK], acc[PACKED_BLOCK];
	int32_t values[PACKED_BLOCK];
};

/* Clears the call's counts. */
void packed_begin(struct packed_blocks *b, struct kernel_call *call);
/* Loads the next block; false when there is none, or no more is wanted. */
bool packed_next(struct packed_blocks *b);
/* Shifts, saturates and writes the block's values (used up), and counts what saturated. */
void packed_store(struct packed_blocks *b);

#endif
