/* Meetings: pairs of tensors that have a byte of their footprints in common.
 *
 * Only roots meet: a view has no footprint of its own, and its bytes are its root's. Two roots meet where their
 * ranges of offsets, [offset, offset + bytes_per_npu), have one in common. Since a tensor has an element at its
 * first offset, one of them then has data or dummies in the other's footprint (as a footprint is its range on all
 * NPUs), and a kernel that writes the other may destroy them. No byte is data or dummy of two roots. So operations
 * on two roots can only be in each other's way
 *   - where the roots have a meeting, and
 *   - one of the two is a kernel with an output on one of them (its footprint), whatever the other does.
 * DMA on both, or what only reads both, never is, with a meeting or without.
 *
 * Links are made when a tensor is placed over others, which nothing but reuse does, and go with the first of the
 * two. They stay when others move: compaction moves nobody that has one. */
#ifndef DEVICE_MEETINGS_H
#define DEVICE_MEETINGS_H

#include "daemon/device/memory/heap.h"
#include "daemon/device/tensors/tensor.h"

/* How many a tensor has at most: reuse refuses a place that would take more (RESOURCE_EXHAUSTED), of the new
 * tensor or of one that it would meet. So each walk below is bounded, and so is what the links take: 64 bytes of
 * host memory for each pair. */
enum { MEETINGS_MAX = 256 };

struct meeting {
	struct tensor *other; /* a root */
	struct meeting *next, *prev;
	uint8_t end;  /* 0: of the one that came later, whose twin is of the other; else 1 */
	bool checked; /* of end 0: the two were found to share safely, and which one is the host */
	bool lends;   /* an empty block of this tensor has data of the other */
};

/* The other's link of the pair. */
static inline struct meeting *meetings_twin(struct meeting *meeting)
{
	return meeting->end ? meeting - 1 : meeting + 1;
}

/* The first meeting of a tensor, or of a view's root; go on with ->next. NULL: it meets nobody. In no promised
 * order. O(1). */
static inline const struct meeting *meetings_first(const struct tensor *tensor)
{
	return tensor_root(tensor)->first_meeting;
}

/* Joins a root that came with one that was there; they have no meeting yet, and both fewer than MEETINGS_MAX. 0 or
 * -ENOMEM (nothing changed). */
int meetings_add(const struct heap *heap, struct tensor *later, struct tensor *other);
/* Ends all meetings of a root. */
void meetings_end(const struct heap *heap, struct tensor *tensor);

#endif
