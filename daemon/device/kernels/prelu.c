/* PReLU: what is negative is multiplied by the slope of its index along axis=, which is c, h or w. */
#include "daemon/device/kernel_support/operands.h"
#include "daemon/device/kernel_support/elementwise/slope.h"

/* In the order of the parameter's choices. */
enum { AXIS_NONE = 1, AXIS_N, AXIS_C, AXIS_H, AXIS_W };

static int check(const struct kernel_call *call, struct npumem_error *error)
{
	const struct npumem_dims *in = &operands_get(call, SLOPE_IN)->shape;
	struct npumem_dims slope = {1, 1, 1, 1};
	int64_t axis = kernel_param(call, NPUMEM_PARAM_AXIS, 0, AXIS_C);
	switch (axis) {
	case AXIS_NONE:
	case AXIS_N:
		npumem_error_set(error, NPUMEM_INVALID, "%s: axis is %s, but must be c, h or w", call->row->name,
				 axis == AXIS_N ? "n" : "none");
		npumem_error_text(error, "parameter", "axis");
		return NPUMEM_INVALID;
	case AXIS_C:
		slope.c = in->c;
		break;
	case AXIS_H:
		slope.h = in->h;
		break;
	case AXIS_W:
		slope.w = in->w;
		break;
	}
	return slope_check(call, &slope, error);
}

const struct kernel kernel_prelu = {
	.number = NPUMEM_KERNEL_PRELU,
	.in_place = true,
	.walks = true,
	.by_feature = 1 << SLOPE_IN | 1 << SLOPE_OUT,
	.check = check,
	.steps = slope_steps,
	.run = slope_run,
};
