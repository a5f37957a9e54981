/* Tensors by their offsets, hosts and guests (overlap.h). */
#ifndef DEVICE_OVERLAP_WALK_H
#define DEVICE_OVERLAP_WALK_H

#include "daemon/device/internal.h"

/* Visits each live tensor (no views), but `except`, whose footprint has bytes in the quanta of [offset, offset +
 * bytes), hosts first and each of the two in order of offset; return false to stop. False where the visitor
 * stopped. O(log n) for each. */
bool overlap_each(const struct device *device, int64_t offset, int64_t bytes, const struct tensor *except,
		  bool (*visit)(void *ctx, struct tensor *tensor), void *ctx);

/* The same in pieces, between which tensors may come and go: one that stays is found once. Zeroed to begin. */
struct overlap_cursor {
	uint64_t offset;	       /* hosts from here on */
	bool guests;		       /* hosts are done */
	uint64_t guest_from, guest_id; /* guests behind this one */
};
/* The next one; NULL: there is none. */
struct tensor *overlap_next(const struct device *device, int64_t offset, int64_t bytes,
			    struct overlap_cursor *cursor);

/* Whether another tensor has bytes in a quantum of this one's range. */
bool overlap_any(const struct device *device, const struct tensor *tensor);

/* The tensor that a place's range of offsets meets, byte by byte; of several the one that starts first; NULL:
 * none. */
struct tensor *overlap_first(const struct device *device, const struct npumem_place *place);

#endif
