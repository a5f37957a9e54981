/* The groups of elements that softmax and l2_normalize treat one by one: the whole tensor, or the lines along one
 * axis. Roles in and out of one type and shape; axis=none, c, h or w. */
#ifndef DEVICE_LUT_GROUPS_H
#define DEVICE_LUT_GROUPS_H

#include "daemon/device/operations/kernel.h"

enum { LUT_GROUPS_IN, LUT_GROUPS_OUT };

/* Types, shapes, parameters and out's format: 0 or INVALID. */
int lut_groups_check(const struct kernel_call *call, struct npumem_error *error);

/* For a call that passed. */
size_t lut_groups_scratch_bytes(const struct kernel_call *call);

/* By how many passes a kernel goes over a group. */
int64_t lut_groups_steps(const struct kernel_call *call, unsigned passes);

struct lut_groups {
	unsigned bytes;	    /* of an element */
	int64_t size, step; /* elements of a group, and how far apart they lie in the tensor */
	int64_t n, at;
	unsigned passes;     /* over each group */
	int64_t run, looked; /* elements of the group's passes that are done, and that were told */
	int64_t moved;	     /* elements whose move was not told */
	bool stopped;	     /* no more are wanted */
	/* The group's elements, one behind the other: those of the tensor, or copies, which are in and out in one.
	 */
	const uint8_t *in;
	uint8_t *out;
};

/* Groups in order:
 *
 *	for (lut_groups_begin(&g, call, passes); lut_groups_next(&g, call);)
 *		… */
void lut_groups_begin(struct lut_groups *groups, const struct kernel_call *call, unsigned passes);
/* False where there are no more, or no more are wanted. */
bool lut_groups_next(struct lut_groups *groups, const struct kernel_call *call);

/* Pieces of a pass over the group's elements; false where there are no more, or no more are wanted:
 *
 *	for (int64_t i = 0, end = 0; lut_groups_piece(&g, call, &end); i = end)
 *		… elements [i, end) … */
bool lut_groups_piece(struct lut_groups *groups, const struct kernel_call *call, int64_t *end);

#endif
