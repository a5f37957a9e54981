/* What all tensors add up to, kept as they come and go: of each kind of byte, and on each NPU. */
#ifndef DEVICE_SUMS_H
#define DEVICE_SUMS_H

#include <npumem/layout.h>

#include "daemon/device/heap.h"

struct sums {
	struct npumem_blocks blocks; /* views not counted; bytes of several tensors once for each */
	int64_t everywhere;	     /* bytes of data and dummies that each NPU holds */
	/* n_npus + 1: by how much more an NPU holds than the one before it, so that a tensor changes two or three
	 * of them. */
	int64_t *steps;
};

/* 0 or -ENOMEM. */
int sums_init(struct sums *sums, const struct heap *heap, const struct npumem_geometry *geometry);
void sums_deinit(struct sums *sums, const struct heap *heap);

/* `sign`: 1 for one that comes, -1 for one that goes. */
void sums_add(struct sums *sums, const struct npumem_geometry *geometry, const struct npumem_place *place,
	      int64_t sign);

/* Bytes of data and dummies on each NPU; `npus` has n_npus. */
void sums_of_npus(const struct sums *sums, const struct npumem_geometry *geometry, int64_t *npus);

#endif
