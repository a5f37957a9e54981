/* Elements of dense operands, widened. */
#ifndef DEVICE_ELEMENTS_H
#define DEVICE_ELEMENTS_H

#include "daemon/device/fixed/rows/rows.h"
#include "daemon/device/operations/kernel.h"

/* Elements first, first + 1, … (n of them) of an array of an integer or fixed point `dtype`. */
void elements_load64(int dtype, const void *data, int64_t first, int64_t n, int64_t *to);
/* The same for types that int32_t holds. */
void elements_load32(int dtype, const void *data, int64_t first, int64_t n, int32_t *to);
/* Copies n elements of `bytes` each into an output, and tells them; `pending` as kernel_step_rarely. False where
 * the rest is no longer wanted. */
bool elements_copy(const struct kernel_call *call, void *to, const void *from, int64_t n, unsigned bytes,
		   int64_t *pending);

/* Elements of an input on their way into an output: as they are, or rounded and saturated where the output has
 * another format. */
struct elements_move {
	const struct kernel_call *call;
	int64_t *saturated; /* is counted there */
	unsigned in_bytes, out_bytes;
	bool converts;
	struct row row;
};
static inline bool elements_are_converted(const struct kernel_operand *in, const struct kernel_operand *out)
{
	return in->dtype != out->dtype || in->frac_bits != out->frac_bits;
}
/* INVALID unless `role` has the type of `as`, or both are fx8 or fx16, with any frac_bits. */
int elements_check_move(const struct kernel_call *call, unsigned role, unsigned as, struct npumem_error *error);
void elements_move_init(struct elements_move *move, struct kernel_call *call, const struct kernel_operand *in,
			const struct kernel_operand *out);
/* Moves n elements and tells them, as elements_copy. */
bool elements_move(struct elements_move *move, void *to, const void *from, int64_t n, int64_t *pending);
/* At most 2^24 of them, and tells nothing. */
void elements_move_some(struct elements_move *move, void *to, const void *from, int64_t n);

#endif
