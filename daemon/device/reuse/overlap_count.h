/* How the bytes count that several tensors have: each once, as its strongest kind. Kept per window of offsets, so
 * that a change of tensors costs only the windows where it meets others, and these can be counted bit by bit. */
#ifndef DEVICE_OVERLAP_COUNT_H
#define DEVICE_OVERLAP_COUNT_H

#include "daemon/device/internal.h"

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

/* The tensors at offsets [from, to) change. Where from >= to no window changes, but one that is partly counted is
 * begun again. */
void overlap_count_again(struct device *device, int64_t from, int64_t to);

/* Counts windows that have changed, and looks at `most` tensors at most, each twice; one that is in several
 * windows is looked at in each. One window may need several calls, as thousands of tensors of 4 bytes on different
 * NPUs may lie in it: it is begun again when any tensor comes, goes or moves in between. True when no changed
 * window is left, and always without guests. */
bool overlap_count(struct device *device, unsigned most);

/* Of the windows that are counted. */
struct overlap_excess overlap_sum(const struct device *device);

#endif
