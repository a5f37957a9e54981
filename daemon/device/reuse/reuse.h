/* The safety rule of empty blocks: may this tensor lie where other footprints are, and where could it?
 *
 * A kernel drives all NPUs in lockstep and may destroy every byte of its output's footprint, empty blocks
 * included. So data in another's empty block is safe only while no kernel can write either of the two. */
#ifndef DEVICE_REUSE_H
#define DEVICE_REUSE_H

#include "daemon/device/internal.h"

struct reuse_wish {
	int reuse; /* enum npumem_reuse: if-safe or unchecked */
	bool dma_only;
	bool any_writer; /* search only: as if no kernel could write any of the tensors */
};

/* Whether a placed new tensor may share bytes with the footprints it meets. 0, or FAILED_PRECONDITION naming the
 * tensor in the way, the NPU and the bytes, and what would make it safe; or RESOURCE_EXHAUSTED where it or one of
 * them would have more meetings than MEETINGS_MAX. */
int reuse_verdict(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		  const struct error_context *context);

/* The lowest offset where the verdict would be 0. 0; RESOURCE_EXHAUSTED (no such place; `context` is not told);
 * -ENOMEM. */
int reuse_search(const struct device *device, const struct npumem_place *place, const struct reuse_wish *wish,
		 int64_t *offset);

#endif
