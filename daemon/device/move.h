/* Moving elements between local memory and dense or strided arrays, and within local memory, layout to layout.
 * These are the only loops over elements that know both a layout and a host array. */
#ifndef DEVICE_MOVE_H
#define DEVICE_MOVE_H

#include "daemon/device/local.h"

/* A host array as element (n, c, h, w) of a logical shape at base + (n*n_stride + ...) elements; a matrix has its
 * row in n and its column in w. */
struct move_host {
	uint8_t *base; /* of element 0 */
	struct npumem_dims stride;
};

/* The dense row-major array of a place, whose element `first` is at `base`. */
struct move_host move_dense(const struct npumem_place *place, void *base, int64_t first);

/* Elements [first, first + count), local memory to host and back. move_in marks what it writes and puts 0 into the
 * dummies beside it. */
void move_out(const struct local *local, const struct npumem_place *from, int64_t first, int64_t count,
	      const struct move_host *to);
void move_in(struct local *local, const struct npumem_place *to, int64_t first, int64_t count,
	     const struct move_host *from);
/* As move_in, but leaves the dummies alone: how kernels write. */
void move_in_kernel(struct local *local, const struct npumem_place *to, const struct move_host *from);

/* All elements from one place to another of the same logical shape and element size, on other bytes. */
void move_within(struct local *local, const struct npumem_place *from, const struct npumem_place *to);

/* Sets every element to the `element` bytes at `value`; dummies become 0. */
void move_fill(struct local *local, const struct npumem_place *to, const void *value);

/* The byte size of one element. */
static inline int64_t move_element_bytes(const struct npumem_place *place)
{
	return place->word_bytes / place->lanes;
}

#endif
