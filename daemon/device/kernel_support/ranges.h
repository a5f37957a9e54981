/* Parts of a kernel's work for several threads. Each thread has a range of parts, and takes them from its front; a
 * thread that has none left takes the back half of the longest range. So threads stay apart in memory, and have in
 * the next kernel what they made in the last one, if both count their parts in the same direction: a line that
 * goes from one processor to another costs up to half a microsecond. */
#ifndef DEVICE_RANGES_H
#define DEVICE_RANGES_H

#include <stdint.h>

enum {
	RANGES_MAX = 8, /* threads */
	RANGES_PARTS_MAX = 1 << 30,
};

/* Parts `first` to `end` - 1, in one word. Where it is not empty, no value comes twice, as no part does. */
struct range {
	uint32_t first, end;
};

struct ranges {
	struct {
		_Alignas(64) _Atomic struct range range;
	} places[RANGES_MAX];
};

/* All of up to RANGES_PARTS_MAX parts are thread 0's. */
void ranges_init(struct ranges *ranges, int64_t n_parts);
/* A part for thread `number`, less than RANGES_MAX; -1: none is left, but what others have just taken. */
int64_t ranges_take(struct ranges *ranges, unsigned number);

#endif
