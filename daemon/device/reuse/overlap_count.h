/* How the bytes count that several tensors have: each once, as its strongest kind. Kept per window of offsets, so
 * that a change of tensors costs only the windows where it meets others, and these can be counted bit by bit. */
#ifndef DEVICE_OVERLAP_COUNT_H
#define DEVICE_OVERLAP_COUNT_H

#include "daemon/device/internal.h"

/* Small, since thousands of tensors of 4 bytes on different NPUs may lie in one: it is counted in one piece. */
enum { OVERLAP_WINDOW_BYTES = 256 };

/* By how much the sums of all tensors are more than what there is, and what is lent. */
struct overlap_excess {
	struct npumem_blocks over;
	int64_t lent;
};

/* Before the first guest comes: takes memory for its windows, if it is not there. 0 or -ENOMEM. */
int overlap_count_begin(struct device *device);
/* After the last has gone. */
void overlap_count_end(struct device *device);

/* The tensors at offsets [from, to) change. Nothing where from >= to. */
void overlap_count_again(struct device *device, int64_t from, int64_t to);

/* Counts windows that have changed until it has looked at `most` tensors or more; one that is in several windows
 * is looked at in each. True when no changed window is left, and always without guests. */
bool overlap_count(struct device *device, unsigned most);

/* Counts what is left to count. */
struct overlap_excess overlap_sum(struct device *device);

#endif
