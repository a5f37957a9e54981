/* DMA with a segment of a connection without shared memory: its elements are sent and received as an array. */
#ifndef CLIENT_LIB_STAGING_H
#define CLIENT_LIB_STAGING_H

#include <npumem/async.h>

#include "client/lib/messages/region.h"
#include "client/lib/messages/staged.h"

/* Elements of a segment, from where an array of them may be sent, and to where one may come. */
struct staging {
	struct staged_segment *segment; /* a reference; NULL: there is nothing */
	struct region region;
	uint8_t *array; /* dense: in the segment, or: */
	uint8_t *own;
	uint64_t first; /* the element of the tensor that it begins with */
};

/* What is asked for. `count` 0: all from `first`; `stride` NULL: continuous. */
struct staging_ask {
	uint64_t handle;
	const struct npumem_segment *segment;
	uint64_t offset;
	const struct npumem_dims *stride;
	int64_t first, count;
	bool is_read;
};

/* Of a write the elements are gathered. 0 (staging_end is due); NOT_FOUND (no such segment, or a tensor that this
 * connection was not told of), INVALID (as the daemon says it), RESOURCE_EXHAUSTED. */
int staging_begin(struct npumem *npumem, const struct staging_ask *ask, struct staging *staging,
		  struct npumem_error *error);
/* The elements that were read, dense, go to where they belong; `array` may be staging->array. */
void staging_put(struct staging *staging, const uint8_t *array);
/* Of a zeroed one, too. */
void staging_end(struct staging *staging);

/* As npumem_write_segment_async and npumem_read_segment_async. */
int staging_start(struct npumem *npumem, const struct staging_ask *ask, NPUMEM_ASYNC);

#endif
