/* A tensor of the device, or a view of one.
 * A view has no storage of its own: it shares its base's bytes, flags and life. */
#ifndef DEVICE_TENSOR_H
#define DEVICE_TENSOR_H

#include <stdatomic.h>

#include <npumem/layout.h>

#include "daemon/device/tensors/intervals.h"

/* Elements of a root tensor: [from, to) of each dimension, n in words (packed elements together). */
struct tensor_range {
	struct npumem_dims from, to;
};

struct tensor {
	uint64_t handle; /* never 0; not given again while the daemon lives */
	struct npumem_place place;
	struct tensor *base;  /* of a view: the tensor that has the storage, itself no view; else NULL */
	struct tensor *views; /* of a base: its views */
	struct tensor *next_view, *prev_view;
	/* Of a view: what it can reach of its base; of one with another shape, all that it was made from. */
	struct tensor_range range;
	bool is_reshaped; /* it, or what it was made from */
	int reuse;	  /* how it was placed: enum npumem_reuse */
	bool sealed, dma_only, pinned;
	/* It is still being checked whether it may lie where it does, or others of its request are: it is in the
	 * table, but for nobody to see. */
	bool placing;
	bool guest; /* overlaps other footprints: see overlap.h */
	/* No byte of its data is unwritten. Set by whichever thread looked, or wrote all of it; goes back only
	 * after DMA was stopped while it wrote, in op_deinit. See tensor_all_written. */
	_Atomic bool all_written;
	uint32_t prepared; /* arena entries set aside for a guest */
	/* Some byte of it was written or poisoned: there is something to forget. Set and cleared by the threads
	 * that do so, while others may look. */
	_Atomic bool touched;
	/* Of a root: raised by each operation that may write some of it, before it does. */
	_Atomic uint64_t version;
	/* Of a root: what is kept of it for kernels (packs.h), and whose account that is on; NULL: nobody's. The
	 * list is under the packs' lock. */
	struct packs_account *account;
	struct pack *packs;
	_Atomic unsigned n_packs;
	struct meeting *meetings; /* of a root: see meetings.h */
	unsigned n_meetings;
	struct interval visit; /* of a guest: its quanta, in the device's set of them */
	void *owner;	       /* the service's record; the device never looks into it */
};

/* What device_keep_for_owner asked for: zero at first, and gone with the tensor. */
static inline void *tensor_owner_room(struct tensor *tensor)
{
	return tensor + 1;
}

/* The tensor that has the storage. */
static inline struct tensor *tensor_root(const struct tensor *tensor)
{
	return (struct tensor *)(tensor->base ? tensor->base : tensor);
}

static inline struct tensor_range tensor_range_whole(const struct npumem_place *place)
{
	return (struct tensor_range){{0, 0, 0, 0},
				     {place->words_n, place->shape.c, place->shape.h, place->shape.w}};
}

/* What a tensor, or a view, reaches of its root. */
static inline struct tensor_range tensor_range(const struct tensor *tensor)
{
	return tensor->base ? tensor->range : tensor_range_whole(&tensor->place);
}

/* True where it is known that all was written, its own bytes or its base's. */
static inline bool tensor_all_written(const struct tensor *tensor)
{
	return atomic_load_explicit(&tensor->all_written, memory_order_relaxed) ||
	       atomic_load_explicit(&tensor_root(tensor)->all_written, memory_order_relaxed);
}

#endif
