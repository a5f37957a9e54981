#include "daemon/device/kernel_support/ranges.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef _Atomic struct range place;

void ranges_init(struct ranges *ranges, int64_t n_parts)
{
	for (unsigned i = 0; i < RANGES_MAX; i++)
		ranges->places[i].range = (struct range){0, i ? 0 : (uint32_t)n_parts};
}

static bool replace(place *at, struct range *was, struct range range)
{
	return atomic_compare_exchange_strong(at, was, range);
}

/* The longest range there is now, of which it is; NULL: none has any part. */
static place *find_longest(struct ranges *ranges, struct range *range)
{
	place *longest = NULL;
	*range = (struct range){0, 0};
	for (unsigned i = 0; i < RANGES_MAX; i++) {
		struct range other = atomic_load(&ranges->places[i].range);
		if (other.end - other.first > range->end - range->first) {
			longest = &ranges->places[i].range;
			*range = other;
		}
	}
	return longest;
}

int64_t ranges_take(struct ranges *ranges, unsigned number)
{
	place *own = &ranges->places[number].range, *other;
	struct range range = atomic_load(own);
	while (range.first < range.end)
		if (replace(own, &range, (struct range){range.first + 1, range.end}))
			return range.first;
	while ((other = find_longest(ranges, &range))) {
		uint32_t half = range.first + (range.end - range.first) / 2;
		struct range rest = {range.first, half};
		if (!replace(other, &range, rest))
			continue;
		range.first = half + 1;
		atomic_store(own, range);
		return half;
	}
	return -1;
}
