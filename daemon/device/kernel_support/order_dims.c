#include "daemon/device/kernel_support/order_dims.h"

const char *const order_dims_names[ORDER_DIMS] = {"n", "c", "h", "w"};
const char *const order_dims_capitals[ORDER_DIMS] = {"N", "C", "H", "W"};

/* The choices of axis=: none, and the dimensions in their order. */
enum { AXIS_NONE = 1, AXIS_FIRST };

int order_dims_axis(const struct kernel_call *call)
{
	int64_t axis = kernel_param(call, NPUMEM_PARAM_AXIS, 0, AXIS_NONE);
	return axis == AXIS_NONE ? ORDER_DIMS_NONE : (int)(axis - AXIS_FIRST);
}

struct order_span order_dims_span(const struct npumem_dims *dims, int axis)
{
	int64_t extents[ORDER_DIMS];
	struct order_span span = {1, 1, 1};
	order_dims_split(dims, extents);
	for (int i = 0; i < ORDER_DIMS; i++) {
		if (i < axis)
			span.outer *= extents[i];
		else if (i == axis)
			span.extent = extents[i];
		else
			span.inner *= extents[i];
	}
	return span;
}
