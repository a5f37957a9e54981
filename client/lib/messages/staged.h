/* What a connection without shared memory remembers, so that system memory can be had over it all the same: the
 * shapes of tensors that calls returned, and segments of this process's own. */
#ifndef CLIENT_LIB_STAGED_H
#define CLIENT_LIB_STAGED_H

#include <npumem/client.h>

#include "client/lib/connection/memory.h"

struct staged_tensor {
	uint64_t handle; /* 0: a free slot */
	uint32_t element_bytes;
	bool is_matrix;	   /* its extents are rows, columns, 1, 1 */
	int64_t extent[4]; /* of a dense array of it */
};

struct staged_segment {
	const struct memory *memory;
	struct staged_segment *next; /* among those that are shared */
	uint64_t id;
	unsigned references;
	uint8_t *base;
	size_t bytes;
};

struct staged {
	struct staged_tensor *tensors; /* open addressing */
	unsigned n_slots, used;	       /* n_slots: a power of two, or 0 */
	struct staged_segment *segments;
	uint64_t last_id;
};

/* Where there is no memory, or the tensor has no shape that an array could have, it stays unknown. */
void staged_note(struct staged *staged, const struct memory *memory, const struct npumem_tensor *tensor);
void staged_forget(struct staged *staged, uint64_t handle);
/* NULL: unknown. Until the next note. */
const struct staged_tensor *staged_find(const struct staged *staged, uint64_t handle);

/* Zeroed bytes with two references: the caller's, and that of `staged`, which has its id from now on. 0 or
 * -ENOMEM.
 */
int staged_share(struct staged *staged, const struct memory *memory, size_t bytes, struct staged_segment **out);
/* NULL: there is none. */
struct staged_segment *staged_segment(const struct staged *staged, uint64_t id);
/* It is found no more: false where it was not. */
bool staged_unshare(struct staged *staged, uint64_t id);
void staged_keep(struct staged_segment *segment);
/* NULL is allowed. */
void staged_drop(struct staged_segment *segment);

void staged_deinit(struct staged *staged, const struct memory *memory);

#endif
