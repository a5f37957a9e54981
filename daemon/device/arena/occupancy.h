/* Which offsets of an NPU a set of tensors takes, in OCCUPANCY_CELLS equal parts. A cell is free when no tensor of
 * the set has a byte of it. Parts are coarse on purpose: a change costs O(1) and a question OCCUPANCY_CELLS steps,
 * however many tensors there are. A question may miss free bytes at the ends of a free range; it never counts a
 * taken one. */
#ifndef DEVICE_OCCUPANCY_H
#define DEVICE_OCCUPANCY_H

#include <stdbool.h>
#include <stdint.h>

enum { OCCUPANCY_CELLS = 1024 };

/* Zeroed to begin: all are free. */
struct occupancy {
	int32_t change[OCCUPANCY_CELLS + 1]; /* tensors that begin in this cell, less those that end before it */
	uint64_t n_changes;
};

/* A tensor at offsets [from, to) joins the set (by: 1), or leaves it (by: -1). */
void occupancy_add(struct occupancy *occupancy, int64_t npu_bytes, int64_t from, int64_t to, int by);

/* How many pieces of so many cells (> 0) the free ranges hold, each in one range. */
unsigned occupancy_pieces(const struct occupancy *occupancy, unsigned piece);

/* The longest range [*from, *to) in which a tensor can join without taking one of those pieces; it may be empty.
 */
void occupancy_spare(const struct occupancy *occupancy, int64_t npu_bytes, unsigned piece, int64_t *from,
		     int64_t *to);

/* What two sets leave free. Zeroed to begin. */
struct occupancy_gaps {
	uint64_t n_changes[2];
	bool is_known;
	uint16_t n_taken[OCCUPANCY_CELLS + 1]; /* before each cell */
	int64_t longest; /* bytes of the longest free range, from a multiple of ARENA_ALIGN_MAX on */
};
/* Follows the two sets; costs nothing where they have not changed. */
void occupancy_gaps_update(struct occupancy_gaps *gaps, int64_t npu_bytes, const struct occupancy *a,
			   const struct occupancy *b);
/* Whether [from, to) is free. */
bool occupancy_gaps_has(const struct occupancy_gaps *gaps, int64_t npu_bytes, int64_t from, int64_t to);

#endif
