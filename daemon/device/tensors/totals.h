/* What all tensors add up to, kept as they come and go: of each kind of byte, and on each NPU. */
#ifndef DEVICE_TOTALS_H
#define DEVICE_TOTALS_H

#include <npumem/layout.h>

#include "daemon/device/memory/heap.h"
#include "daemon/device/tensors/tensor.h"

struct totals {
	struct npumem_blocks blocks; /* views not counted; bytes of several tensors once for each */
	int64_t everywhere;	     /* bytes of data and dummies that each NPU holds */
	/* n_npus + 1: by how much more an NPU holds than the one before it, so that a tensor changes a few of
	 * them.
	 */
	int64_t *differences;
};

/* 0 or -ENOMEM. */
int totals_init(struct totals *totals, const struct heap *heap, const struct npumem_geometry *geometry);
void totals_deinit(struct totals *totals, const struct heap *heap);

/* `sign`: 1 for a root that comes, -1 for one that goes. */
void totals_add(struct totals *totals, const struct npumem_geometry *geometry, const struct tensor *tensor,
		int64_t sign);

/* Bytes of data and dummies on each NPU; `npus` has n_npus. */
void totals_of_npus(const struct totals *totals, const struct npumem_geometry *geometry, int64_t *npus);

#endif
