/* Elements of a segment of system memory that a recorded operation moved: how a replay puts back what a write
 * took, and looks at what a read delivered. */
#ifndef CLIENT_LIB_REGION_H
#define CLIENT_LIB_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/npumem.pb-c.h"

struct region {
	uint64_t offset; /* of element 0, in bytes */
	uint64_t element_bytes;
	uint64_t extent[4], stride[4]; /* in elements */
	uint64_t bytes;		       /* of all elements, dense */
	uint64_t end;		       /* the first byte behind them in the segment */
};

/* False where the numbers make no sense, or are too large to be computed with. */
bool region_of(const Npumem__V1__RecordTransfer *transfer, struct region *region);

/* Sets the sizes where the rest is set: extents > 0. False where they are too large to be computed with. */
bool region_measure(struct region *region);

/* `base` is the segment's, which has at least region->end bytes. `first` and `n` are whole elements within
 * region->bytes. */
void region_put(const struct region *region, uint8_t *base, uint64_t first, const uint8_t *from, uint64_t n);
/* All elements, dense. */
void region_get(const struct region *region, const uint8_t *base, uint8_t *to);
/* zlib's CRC-32 of all elements, dense. */
uint32_t region_crc(const struct region *region, const uint8_t *base);

#endif
