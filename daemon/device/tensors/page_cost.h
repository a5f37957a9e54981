/* What page faults of an operation may cost. A fault runs in the kernel on the thread that touches the page, so an
 * operation on many such pages belongs on a worker thread. Counts pages, not bytes: one byte on each of 1,024 NPUs
 * is 1,024 pages. */
#ifndef DEVICE_PAGE_COST_H
#define DEVICE_PAGE_COST_H

#include "daemon/device/internal.h"

/* In op_cost's unit, for n elements of a tensor or a view. On a disk a small operation is long, unless the pages
 * of its bytes are in memory now. */
int64_t page_cost_write(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n);
int64_t page_cost_read(const struct device *device, const struct tensor *tensor, int64_t first, int64_t n);
/* To count the bits of a tensor once. On a disk it is always long. */
int64_t page_cost_scan(const struct device *device, const struct tensor *tensor);

#endif
