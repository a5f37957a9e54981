/* Why an allocation found no room, in words and fields. */
#ifndef DEVICE_EXPLAIN_H
#define DEVICE_EXPLAIN_H

#include "daemon/device/internal.h"

/* With more tensors than that a refusal does not say what compaction or if-safe would do: it would take too long.
 */
enum { EXPLAIN_TENSORS_MAX = 4096 };

/* RESOURCE_EXHAUSTED: bytes asked, free in all, the largest free extent, the largest N of the shape that would
 * fit, which tensors are in the way of a fixed address, and what else would fit it. Always returns that status. */
int explain_no_room(struct device *device, const struct device_request *request, const struct npumem_place *place,
		    const struct error_context *context);

#endif
