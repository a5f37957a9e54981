/* The safety rule of empty blocks: may this tensor lie where other footprints are?
 *
 * A kernel drives all NPUs in lockstep and may destroy every byte of its output's footprint, empty blocks
 * included. So data in another's empty block is safe only while no kernel can write either of the two. */
#ifndef DEVICE_REUSE_H
#define DEVICE_REUSE_H

#include "daemon/device/geometry/intersect.h"
#include "daemon/device/internal.h"

struct reuse_wish {
	int reuse; /* enum npumem_reuse: if-safe or unchecked */
	bool dma_only;
	bool any_writer; /* search only: as if no kernel could write any of the tensors */
};

/* 0, or RESOURCE_EXHAUSTED, naming the other where it is that, where a new tensor at `place`, or one that it would
 * meet, would have more meetings than MEETINGS_MAX. */
int reuse_check_crowd(const struct device *device, const struct npumem_place *place,
		      const struct error_context *context);

/* What is to be known of a new tensor and one that it meets. Private but for `lends` and `borrows`, which hold
 * when the answer is 0: whether an empty block of the new one has data of the other, or the other way round. */
struct reuse_check {
	const struct device *device;
	struct npumem_place place, other_place;
	const struct tensor *other;
	struct reuse_wish wish;
	unsigned question;
	struct intersect walk;
	struct intersect_range range; /* of the first question */
	bool lends, borrows;
};

/* Begins to check a place against a tensor whose offsets it meets; both stay as they are until the last step. */
void reuse_check_begin(struct reuse_check *check, const struct device *device, const struct npumem_place *place,
		       const struct reuse_wish *wish, const struct tensor *other);

/* Goes on: -EAGAIN when *steps (as of intersect_step) are used up. 0 where the two may share what they share; or
 * FAILED_PRECONDITION naming the other, the NPU and the bytes, and what would make it safe. */
int reuse_check_step(struct reuse_check *check, int64_t *steps, const struct error_context *context);

#endif
