/* Moving elements between local memory and dense or strided arrays, and within local memory, layout to layout.
 *
 * A move returns false where it was stopped (`watch` NULL: never). What a stopped one has written by then counts
 * as never written, so that nobody takes a part for the whole; the rest is as it was.
 * `is_known`: all that it writes is known to be written and not damaged, so that no mark need be set for it. */
#ifndef DEVICE_MOVE_H
#define DEVICE_MOVE_H

#include "daemon/device/operations/move_side.h"
#include "daemon/device/operations/move_watch.h"

/* The dense row-major array of a place, whose element `first` is at `base`. */
struct move_host move_dense(const struct npumem_place *place, void *base, int64_t first);

/* Elements [first, first + count), local memory to host and back. move_in marks what it writes and puts 0 into the
 * dummies beside it. */
bool move_out(const struct local *local, const struct npumem_place *from, int64_t first, int64_t count,
	      const struct move_host *to, struct move_watch *watch);
bool move_in(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
	     const struct move_host *from, bool is_known, struct move_watch *watch);
/* All elements, but neither marks nor dummies, and never stopped: how kernels write. */
void move_in_kernel(struct local *local, const struct npumem_place *to, const struct move_host *from,
		    struct kernel_progress *progress);

/* All elements from one place to another of the same logical shape and element size, on other bytes. */
bool move_within(struct local *local, const struct npumem_place *from, const struct npumem_place *to,
		 bool is_known, struct move_watch *watch);

/* Sets every element to the `element` bytes at `value`; dummies become 0. */
bool move_fill(struct local *local, const struct npumem_place *to, const void *value, bool is_known,
	       struct move_watch *watch);

#endif
