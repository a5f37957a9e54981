/* The time that the peer has to move data. Moved bytes extend it at a least rate, but not beyond the whole time
 * from now. So a byte now and then hardly extends it, and fast moves save nothing up. */
#ifndef SERVER_PACE_H
#define SERVER_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PACE_BYTES_PER_SECOND = 256 << 10 };

struct pace {
	uint64_t due_ns;
};

/* From now on the peer has `allowed_ms`. */
static inline void pace_begin(struct pace *pace, uint64_t now_ms, uint64_t allowed_ms)
{
	pace->due_ns = (now_ms + allowed_ms) * 1000000;
}

/* The peer has moved so many bytes, less than 2^34. */
static inline void pace_moved(struct pace *pace, size_t bytes, uint64_t now_ms, uint64_t allowed_ms)
{
	uint64_t most_ns = (now_ms + allowed_ms) * 1000000;

	pace->due_ns += (uint64_t)bytes * 1000000000 / PACE_BYTES_PER_SECOND;
	if (pace->due_ns > most_ns)
		pace->due_ns = most_ns;
}

static inline bool pace_is_over(const struct pace *pace, uint64_t now_ms)
{
	return now_ms * 1000000 >= pace->due_ns;
}

#endif
