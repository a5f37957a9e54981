/* Where could a tensor lie over others? The lowest offset at which reuse_check would find nothing against it,
 * asked of many offsets at once and in bounded pieces. */
#ifndef DEVICE_REUSE_SEARCH_H
#define DEVICE_REUSE_SEARCH_H

#include "daemon/device/geometry/npu_groups.h"
#include "daemon/device/reuse/overlap_walk.h"
#include "daemon/device/reuse/reuse.h"

/* Bits that two maps of a search may have for a tensor's own bytes: of 64 or 128 bytes each where the tensor lies
 * in multiples of that, as the aligned and matrix layouts do, else of one byte. Tensors of more are not searched
 * for. */
enum { REUSE_SEARCH_UNITS_MAX = 1 << 22 };

/* A box of the tensor that must not meet what is in its way. Part 0 is the footprint, which no writer's may meet.
 */
struct reuse_search_part {
	int64_t npu, end_npu; /* that have the box */
	struct strided_box box;
};

/* A tensor that is in the way, while it is being added. */
struct reuse_search_other {
	struct npumem_place place; /* a copy, as it may go meanwhile */
	unsigned kinds;		   /* of its bytes that are in the way */
	struct npu_groups groups;
	unsigned group;	       /* the next of them */
	struct kind_mask mask; /* of the one before */
	int64_t steps;	       /* that a look at it counts for */
	int64_t at, end;       /* the offsets of the mask that are not added yet */
};

enum { REUSE_SEARCH_PARTS_MAX = 1 + 2 * (KIND_MASK_CUTS + 1) };

/* Private. */
struct reuse_search {
	const struct device *device;
	struct npumem_place place;
	struct reuse_wish wish;
	int64_t unit;	     /* bytes of a bit */
	int64_t bytes, last; /* of the footprint, and the last offset that may be asked about: in units */
	int64_t most, at, n; /* the window: how large it may be, offsets [at, at + n): in units */
	size_t n_words;	     /* of a map, in which bit 0 is unit or offset `at` */
	uint64_t *memory;
	size_t memory_bytes;
	uint64_t *blocked;     /* offsets at which the tensor may not lie */
	uint64_t *taken;       /* units that a full unit of this part may not enter, */
	uint64_t *taken_ahead; /* and those that the last, partly used unit of a run may not; not where a unit is 1
				*/
	uint64_t *gathered;    /* in the making: offsets at which the part would meet them */
	unsigned n_parts, part;
	struct reuse_search_part parts[REUSE_SEARCH_PARTS_MAX];
	enum { REUSE_SEARCH_CLEAR, REUSE_SEARCH_COLLECT, REUSE_SEARCH_COPY, REUSE_SEARCH_GATHER } phase;
	uint64_t *piece, *pieces_end; /* what is left to be cleared, or to be copied to */
	struct overlap_cursor cursor; /* over what is in the way */
	struct reuse_search_other other;
	unsigned axis; /* being gathered: 0 is the run, the last axis of the box is 1 */
	int64_t have;  /* steps of it that are */
	int64_t found; /* bytes */
};

/* Looks for a place; `place` need not be anywhere. 0; RESOURCE_EXHAUSTED, saying so: the tensor is too large to be
 * searched for; -ENOMEM. Takes up to 4 MiB of host memory (memory_bytes), until reuse_search_end. */
int reuse_search_begin(struct reuse_search *search, const struct device *device, const struct npumem_place *place,
		       const struct reuse_wish *wish, const struct error_context *context);

enum reuse_search_answer { REUSE_SEARCH_NONE, REUSE_SEARCH_FOUND, REUSE_SEARCH_PAUSE };

/* Goes on: FOUND (*offset, in bytes); NONE; or PAUSE when *steps, of which it takes one for about 0.3 us, are used
 * up. Between two calls tensors may come and go: then what is found may no longer be right, or the lowest. */
enum reuse_search_answer reuse_search_step(struct reuse_search *search, int64_t *steps, int64_t *offset);
/* Also after a begin that failed. */
void reuse_search_end(struct reuse_search *search);

#endif
