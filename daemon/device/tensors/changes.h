/* Callbacks for every range of local memory that is about to change, or that has changed: for a copy of the
 * memory. */
#ifndef DEVICE_CHANGES_H
#define DEVICE_CHANGES_H

#include "daemon/device/internal.h"

static inline bool changes_are_told(const struct device *device)
{
	return __builtin_expect(atomic_load_explicit(&device->changes.is_on, memory_order_acquire), 0);
}

/* Of each these come before the change; where nobody is told they do nothing. */

/* Bytes of one NPU, and their bits. */
void changes_tell(const struct device *device, int64_t npu, int64_t offset, int64_t bytes);
/* All that a root has on the NPUs where it has channels; or with `everywhere` on all of them. */
void changes_tell_place(const struct device *device, const struct npumem_place *place, bool everywhere);
/* Elements of a tensor (count < 0: all from `first`). */
void changes_tell_elements(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count);
/* What is kept of the device beside its bytes. */
void changes_tell_kept(const struct device *device);

static inline bool changes_are_told_after(const struct device *device)
{
	return __builtin_expect(device->changes.after != NULL, 0);
}

/* A gap between two stretches that is told with them: a log takes as much for the records of a stretch and its
 * bits. */
enum { CHANGES_GAP_BYTES = 64 };

/* Of each these come after the change; where nobody is told they do nothing. The bits of damage are told of where
 * there may be any. */
void changes_made(const struct device *device, int64_t npu, int64_t offset, int64_t bytes);
/* The places of a root, on the NPUs where it has channels; of a view or of some elements these. */
void changes_made_place(const struct device *device, const struct npumem_place *place);
void changes_made_elements(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count);
/* Some of what is kept beside the bytes. */
void changes_made_kept(const struct device *device, const void *from, size_t bytes);

/* What that takes at most where n elements of a tensor are written, in the measure of op_cost. */
int64_t changes_cost(const struct device *device, const struct tensor *tensor, int64_t n);

#endif
