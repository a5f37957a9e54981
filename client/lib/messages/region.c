/* One walk for both directions, in stretches that lie side by side. */
#include "client/lib/messages/payload.h"

#include <string.h>

#include "proto/digest.h"

static bool take(int64_t from, int64_t least, uint64_t *to)
{
	*to = (uint64_t)from;
	return from >= least;
}

bool region_measure(struct region *region)
{
	uint64_t last = 0, step;
	region->bytes = region->element_bytes;
	for (unsigned i = 0; i < 4; i++)
		if (__builtin_mul_overflow(region->bytes, region->extent[i], &region->bytes) ||
		    __builtin_mul_overflow(region->extent[i] - 1, region->stride[i], &step) ||
		    __builtin_add_overflow(last, step, &last))
			return false;
	return !__builtin_add_overflow(last, 1, &region->end) &&
	       !__builtin_mul_overflow(region->end, region->element_bytes, &region->end) &&
	       !__builtin_add_overflow(region->end, region->offset, &region->end);
}

bool region_of(const Npumem__V1__RecordTransfer *transfer, struct region *region)
{
	const Npumem__V1__Dims *extent = transfer->extent, *stride = transfer->stride;
	*region = (struct region){.offset = transfer->offset, .element_bytes = transfer->element_bytes};
	if (!extent || !stride ||
	    (region->element_bytes != 1 && region->element_bytes != 2 && region->element_bytes != 4 &&
	     region->element_bytes != 8))
		return false;
	if (!take(extent->n, 1, &region->extent[0]) || !take(extent->c, 1, &region->extent[1]) ||
	    !take(extent->h, 1, &region->extent[2]) || !take(extent->w, 1, &region->extent[3]) ||
	    !take(stride->n, 0, &region->stride[0]) || !take(stride->c, 0, &region->stride[1]) ||
	    !take(stride->h, 0, &region->stride[2]) || !take(stride->w, 0, &region->stride[3]))
		return false;
	return region_measure(region);
}

/* Where element `index` is, and how many from there on lie side by side. */
static uint64_t locate(const struct region *region, uint64_t index, uint64_t *n)
{
	uint64_t at = 0;
	*n = region->stride[3] == 1 ? region->extent[3] - index % region->extent[3] : 1;
	for (unsigned i = 4; i-- > 0;) {
		at += index % region->extent[i] * region->stride[i];
		index /= region->extent[i];
	}
	return region->offset + at * region->element_bytes;
}

void region_put(const struct region *region, uint8_t *base, uint64_t first, const uint8_t *from, uint64_t n)
{
	while (n) {
		uint64_t count, at = locate(region, first / region->element_bytes, &count);
		uint64_t bytes = count * region->element_bytes < n ? count * region->element_bytes : n;
		memcpy(base + at, from, bytes);
		first += bytes;
		from += bytes;
		n -= bytes;
	}
}

void region_get(const struct region *region, const uint8_t *base, uint8_t *to)
{
	for (uint64_t first = 0, bytes; first < region->bytes; first += bytes) {
		uint64_t count, at = locate(region, first / region->element_bytes, &count);
		bytes = count * region->element_bytes;
		memcpy(to + first, base + at, bytes);
	}
}

uint32_t region_crc(const struct region *region, const uint8_t *base)
{
	uint32_t crc = 0;
	for (uint64_t first = 0; first < region->bytes;) {
		uint64_t count, at = locate(region, first / region->element_bytes, &count);
		crc = digest_crc(crc, base + at, count * region->element_bytes);
		first += count * region->element_bytes;
	}
	return crc;
}
