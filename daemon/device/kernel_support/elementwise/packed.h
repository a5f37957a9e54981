/* Packed integers: int8, uint8, int16 and uint16, without frac_bits, by the rules that were measured on the
 * vendor's model. Roles in1, in2, acc and out, of which a kernel has in1, out and some; one without in2 has a
 * constant in its place (value=, of the type value_dtype=). All operands have one shape; results are shifted right
 * by rshift=, rounding half toward +infinity whatever the device's default is, and saturated to out's own type. */
#ifndef DEVICE_PACKED_H
#define DEVICE_PACKED_H

#include "daemon/device/operations/kernel.h"

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

/* ---- checks: what the vendor's model refuses or garbles is refused here, by name ---- */

/* Each returns 0 or INVALID. All of them want one shape, a constant that lies in its type, shifts of 0 to 31, and
 * no rounding but `up`. A constant's type is that of in1 where value_dtype= does not say it, a shift's int16. */

/* Sums and differences: sources of one width. */
int packed_check_sum(const struct kernel_call *call, struct npumem_error *error);
/* Products: sources of 8 bits. */
int packed_check_mul(const struct kernel_call *call, struct npumem_error *error);
/* Sources of 8 bits, acc and out of 16. */
int packed_check_mac(const struct kernel_call *call, struct npumem_error *error);
/* Minimum and maximum: sources of one type, out of their width. */
int packed_check_order(const struct kernel_call *call, struct npumem_error *error);
/* Shifts by int16 or uint16; in1 and out are int16. */
int packed_check_arithmetic(const struct kernel_call *call, struct npumem_error *error);
/* Likewise; in1 and out are int16, or both are uint16. */
int packed_check_logical(const struct kernel_call *call, struct npumem_error *error);

/* ---- runs, each for the form with two tensors and the one with a constant ---- */

void packed_run_add(struct kernel_call *call);
/* in1 - in2 */
void packed_run_sub(struct kernel_call *call);
/* in2 - in1 */
void packed_run_sub_from(struct kernel_call *call);
void packed_run_mul(struct kernel_call *call);
/* acc * 2^lshift + in1 * in2, in 32 bits that wrap. */
void packed_run_mac(struct kernel_call *call);
void packed_run_min(struct kernel_call *call);
void packed_run_max(struct kernel_call *call);
/* in1 * 2^amount, cut to 16 bits; a negative amount shifts to the right, where bits are lost without rounding. The
 * amount is the low 8 bits of in2, signed. */
void packed_run_arithmetic_shift(struct kernel_call *call);
/* Likewise of in1 without its sign: zeros come in from the left. */
void packed_run_logical_shift(struct kernel_call *call);

#endif
