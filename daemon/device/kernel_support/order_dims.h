/* The dimensions of an operand by number (0 to 3 for N, C, H, W), and how one of them, an axis, divides its dense
 * array: `outer` times, `extent` runs of `inner` elements. */
#ifndef DEVICE_ORDER_DIMS_H
#define DEVICE_ORDER_DIMS_H

#include "daemon/device/operations/kernel.h"

enum { ORDER_DIMS = 4, ORDER_DIMS_NONE = -1 };

/* "n", "c", "h", "w", and in capitals. */
extern const char *const order_dims_names[ORDER_DIMS];
extern const char *const order_dims_capitals[ORDER_DIMS];

static inline void order_dims_split(const struct npumem_dims *dims, int64_t extents[ORDER_DIMS])
{
	extents[0] = dims->n;
	extents[1] = dims->c;
	extents[2] = dims->h;
	extents[3] = dims->w;
}

static inline struct npumem_dims order_dims_join(const int64_t extents[ORDER_DIMS])
{
	return (struct npumem_dims){extents[0], extents[1], extents[2], extents[3]};
}

/* axis= (its choices were checked); ORDER_DIMS_NONE where it is none or was not given. */
int order_dims_axis(const struct kernel_call *call);

struct order_span {
	int64_t outer, extent, inner;
};
/* Without an axis: one run of everything. */
struct order_span order_dims_span(const struct npumem_dims *dims, int axis);

#endif
