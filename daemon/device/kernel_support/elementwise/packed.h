/* Packed integers: int8, uint8, int16 and uint16, without frac_bits, by the rules that were measured on the
 *vendor's model. Roles in1, in2, acc and out, of which a kernel has in1, out and some; one without in2 has a
 *constant in its place (value=, of the type value_dtype=). All operands have one shape; results are shifted right
 *by rshift=, rounding half toward +infinity whatever the device's default is, and saturated to out's own type.
 *
 * A kernel says what becomes of a row:
 *
 *	for (packed_begin(&p, call); packed_next(&p);)
 *		row_larger(&p.row, p.walk.n, &call->counts.saturated); */
#ifndef DEVICE_PACKED_H
#define DEVICE_PACKED_H

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/kernel_support/walk.h"

enum { PACKED_NONE = -1 };
/* All roles of all of them are reached by feature. */
#define PACKED_BY_FEATURE UINT32_MAX

/* Where the operands of a call are. */
struct packed {
	int in1, in2, acc, out; /* roles, by their places in the row; PACKED_NONE where it has none */
	int in2_dtype;		/* of the second operand, tensor or constant; 0 for a constant's default */
	int64_t value;
};
/* Its choices were checked. */
void packed_read(const struct kernel_call *call, struct packed *packed);

struct packed_rows {
	struct kernel_call *call;
	struct packed packed;
	struct walk walk;
	struct row row;
	int64_t in1_magnitude, in2_magnitude; /* the largest of any element */
};

/* Sets what the row reads and how its values become out's; row_init() is the kernel's. Clears the call's counts.
 */
void packed_begin(struct packed_rows *p, struct kernel_call *call);
/* The next piece; false when there is none, or no more is wanted. */
bool packed_next(struct packed_rows *p);

#endif
