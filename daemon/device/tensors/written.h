/* Whether a tensor's data was ever written, and whether it is damaged. Looking takes time in proportion to the
 * tensor, so it is for worker threads, wherever that is long; all of this may run on any thread. */
#ifndef DEVICE_WRITTEN_H
#define DEVICE_WRITTEN_H

#include "daemon/device/internal.h"

/* Bytes of a place's data (without dummies) that are not written, that are damaged, and of these that are not
 * written either and so are lost, at this moment. Needs no tensor: `place` may be a copy, and what lay there may
 * be gone. `unwritten` may be NULL: not looked for. */
void written_scan(const struct device *device, const struct npumem_place *place, int64_t *unwritten,
		  int64_t *damaged, int64_t *lost);
/* About how long that takes, in the measure of op_cost. */
int64_t written_scan_cost(const struct npumem_place *place);

/* True where the marks of all its data say what a write of it would make them say, so that none need be set. */
static inline bool written_is_known(const struct device *device, const struct tensor *tensor)
{
	return tensor_all_written(tensor) && !device->local.n_damaged;
}

/* All of its data is marked as written. */
static inline void written_note(struct tensor *tensor)
{
	uint64_t doubts = atomic_load_explicit(&tensor_root(tensor)->doubts, memory_order_relaxed);

	atomic_store_explicit(&tensor->doubts, doubts, memory_order_relaxed);
	atomic_store_explicit(&tensor->all_written, true, memory_order_release);
}

/* What was known to be written of a root may no longer be: of itself, and of what shares bytes with it. */
void written_doubt(struct tensor *root);

/* Asked now and then while it looks. */
struct written_watch {
	bool (*wanted)(void *ctx); /* false: the rest is not */
	void *ctx;
};

/* Elements [first, first + count) of a tensor: 0, or FAILED_PRECONDITION saying how many bytes of them were never
 * written and where the first is, whatever the policy; CANCELLED, and no error, where the watch (NULL: none) wants
 * no more. The tensor must stay until it returns. */
int written_check(const struct device *device, struct tensor *tensor, int64_t first, int64_t count,
		  const struct written_watch *watch, const struct error_context *context);
/* Bytes of these elements that are damaged, and of these in *lost that are lost; as many as were found where the
 * watch wanted no more. */
int64_t written_damaged(const struct device *device, const struct tensor *tensor, int64_t first, int64_t count,
			const struct written_watch *watch, int64_t *lost);
/* DATA_LOST, saying how many bytes of what was asked for are lost. */
int written_refuse_lost(const struct tensor *tensor, int64_t lost, const struct error_context *context);

#endif
