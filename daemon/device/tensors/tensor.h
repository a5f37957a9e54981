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

struct tensor_dims {
	int32_t n, c, h, w;
};

/* A place as a tensor keeps it: in a third of the bytes. Dimensions and strides are below 2^31, bytes of one NPU
 * up to 2^30, and bytes of all NPUs up to 2^40. tensor_place computes the rest. */
struct tensor_packed {
	uint64_t padding : 41, start_npu : 10, dtype : 5, layout : 3, mode : 3;
	uint64_t empty : 41, frac_bits : 8 /* + 1 */, lanes : 3, word_bytes : 4;
	int64_t address : 42;
	uint64_t align_bytes : 8;
	struct tensor_dims shape, stride;
	int32_t last_w, offset, bytes_per_npu, channels_per_npu;
};

/* A tensor that lies over others, as the device's set of them has it. */
struct tensor_visit {
	struct interval quanta;
	struct tensor *guest;
	uint32_t prepared; /* entries of the arena that are set aside for its end */
};

/* The tensor table has the structs themselves. */
enum tensor_slot {
	TENSOR_SLOT_CLOSED, /* its generations have run out, or nobody knows which one is next */
	TENSOR_SLOT_LIVE,
	TENSOR_SLOT_UNUSED, /* the struct stays for the next tensor */
};

struct tensor {
	uint64_t handle; /* never 0; not given again while the daemon lives */
	struct tensor_packed packed;
	void *owner;	     /* the service's record; the device never looks into it */
	struct tensor *base; /* of a view: the tensor that has the storage, itself no view; else NULL */
	union {
		struct { /* of a view */
			/* What it can reach of its base; of one with another shape, all that it was made from. */
			struct tensor_dims from, to;
			struct tensor *next_view, *prev_view;
		};
		struct { /* of a root */
			struct tensor *first_view;
			struct meeting *first_meeting; /* see meetings.h */
			struct tensor_visit *visit;    /* of a guest, see overlap.h; else NULL */
			/* What is kept of it for kernels (packs.h); the list is under the packs' lock. */
			struct pack_of *packs;
			struct packs_account *account; /* that its packs are on; NULL: nobody's */
			/* Raised by each operation that may write some of it, before it does. */
			_Atomic uint64_t version;
		};
	};
	/* Of a root: how often all_written went back. Of a view: the root's when it was set last. */
	_Atomic uint64_t doubts;
	union {
		_Atomic uint32_t n_packs; /* of a root */
		uint32_t next_unused;	  /* of an unused slot: index + 1; 0 ends the chain */
	};
	uint16_t n_meetings; /* of a root */
	uint8_t slot;	     /* enum tensor_slot */
	int8_t reuse;	     /* how it was placed: enum npumem_reuse */
	bool is_reshaped;    /* it, or what it was made from */
	bool sealed, dma_only, pinned;
	/* It is still being checked whether it may lie where it does, or others of its request are: it is in the
	 * table, but for nobody to see. */
	bool placing;
	bool is_immovable; /* it is counted in the device's set of those (reuse/overlap.h) */
	/* No byte of its data is unwritten. Set by whichever thread looked, or wrote all of it; goes back only
	 * after DMA was stopped while it wrote, in op_deinit. See tensor_all_written. */
	_Atomic bool all_written;
	/* Some byte of it was written or poisoned: there is something to forget. Set and cleared by the threads
	 * that do so, while others may look. */
	_Atomic bool touched;
};
/* With 100,000 tensors each may take 745 bytes of the daemon's memory: bench_state, "a tensor's bytes in memory".
 * This struct, the service's record (record.h), a block of the arena and a cell of the state's table are 95 % of
 * it.
 */
_Static_assert(sizeof(struct tensor_packed) <= 72 && sizeof(struct tensor) <= 168, "there are many of them");

/* The place of a tensor. */
struct npumem_place tensor_place(const struct tensor *tensor);
/* The same as an argument; it lives as long as the block in which this stands. */
#define TENSOR_PLACE(tensor) ((const struct npumem_place[]){tensor_place(tensor)})

/* ---- of its place, without the others ---- */

static inline int tensor_dtype(const struct tensor *tensor)
{
	return (int)tensor->packed.dtype;
}

/* NPUMEM_ANY of a type that has none. */
static inline int64_t tensor_frac_bits(const struct tensor *tensor)
{
	return (int64_t)tensor->packed.frac_bits - 1;
}

static inline int64_t tensor_lanes(const struct tensor *tensor)
{
	return tensor->packed.lanes;
}

static inline int64_t tensor_start_npu(const struct tensor *tensor)
{
	return tensor->packed.start_npu;
}

static inline int64_t tensor_address(const struct tensor *tensor)
{
	return tensor->packed.address;
}

static inline int64_t tensor_offset(const struct tensor *tensor)
{
	return tensor->packed.offset;
}

static inline int64_t tensor_bytes_per_npu(const struct tensor *tensor)
{
	return tensor->packed.bytes_per_npu;
}

static inline int64_t tensor_end(const struct tensor *tensor)
{
	return tensor_offset(tensor) + tensor_bytes_per_npu(tensor);
}

static inline int64_t tensor_words_n(const struct tensor *tensor)
{
	unsigned lanes = tensor->packed.lanes;

	/* 1, 2 or 4. */
	return (tensor->packed.shape.n + (int64_t)lanes - 1) >> (lanes >> 1);
}

/* Channels; of a matrix its columns, which are channels to a kernel. */
static inline int64_t tensor_columns(const struct tensor *tensor)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t c = packed->shape.c;

	return packed->layout == NPUMEM_MATRIX ? (c - 1) * packed->shape.w + packed->last_w : c;
}

/* As its kernels and its client see it: a matrix has rows and columns. */
static inline struct npumem_dims tensor_shape(const struct tensor *tensor)
{
	const struct tensor_dims *shape = &tensor->packed.shape;

	if (tensor->packed.layout == NPUMEM_MATRIX)
		return (struct npumem_dims){shape->n, tensor_columns(tensor), 1, 1};
	return (struct npumem_dims){shape->n, shape->c, shape->h, shape->w};
}

/* Elements of one N. */
static inline int64_t tensor_features(const struct tensor *tensor)
{
	const struct tensor_packed *packed = &tensor->packed;
	int64_t h = packed->shape.h, w = packed->shape.w;

	return h * ((packed->shape.c - 1) * w + packed->last_w);
}

/* Logical elements, as npumem_place_elements. */
static inline int64_t tensor_elements(const struct tensor *tensor)
{
	return tensor->packed.shape.n * tensor_features(tensor);
}

static inline int64_t tensor_data_bytes(const struct tensor *tensor)
{
	return tensor_elements(tensor) * (tensor->packed.word_bytes >> (tensor->packed.lanes >> 1));
}

/* With dummies. */
static inline int64_t tensor_filled_bytes(const struct tensor *tensor)
{
	return tensor_words_n(tensor) * tensor_features(tensor) * tensor->packed.word_bytes;
}

/* Bytes of its block rows on all NPUs: each of them is of one kind. */
static inline int64_t tensor_footprint_bytes(const struct tensor *tensor)
{
	return tensor_filled_bytes(tensor) + (int64_t)(tensor->packed.padding + tensor->packed.empty);
}

/* A place that follows from a spec, or from a tensor's by view.c. */
void tensor_set_place(struct tensor *tensor, const struct npumem_place *place);

/* Moves it to another offset of the same NPUs. */
static inline void tensor_set_offset(struct tensor *tensor, int64_t npu_bytes, int64_t offset)
{
	tensor->packed.address = (int64_t)tensor->packed.start_npu * npu_bytes + offset;
	tensor->packed.offset = (int32_t)offset;
}

static inline void tensor_set_nowhere(struct tensor *tensor)
{
	tensor->packed.address = NPUMEM_ANY;
	tensor->packed.offset = (int32_t)NPUMEM_ANY;
}

/* Views of a root; a view has none. */
static inline struct tensor *tensor_views(const struct tensor *tensor)
{
	return tensor->base ? NULL : tensor->first_view;
}

/* It lies over other footprints: see overlap.h. */
static inline bool tensor_is_guest(const struct tensor *tensor)
{
	return !tensor->base && tensor->visit;
}

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

/* All that a root has. */
static inline struct tensor_range tensor_range_whole(const struct tensor *root)
{
	const struct tensor_dims *shape = &root->packed.shape;

	return (struct tensor_range){{0, 0, 0, 0}, {tensor_words_n(root), shape->c, shape->h, shape->w}};
}

/* What a tensor, or a view, reaches of its root. */
static inline struct tensor_range tensor_range(const struct tensor *tensor)
{
	if (!tensor->base)
		return tensor_range_whole(tensor);
	return (struct tensor_range){{tensor->from.n, tensor->from.c, tensor->from.h, tensor->from.w},
				     {tensor->to.n, tensor->to.c, tensor->to.h, tensor->to.w}};
}

static inline void tensor_set_range(struct tensor *view, const struct tensor_range *range)
{
	const struct npumem_dims *from = &range->from, *to = &range->to;

	view->from = (struct tensor_dims){(int32_t)from->n, (int32_t)from->c, (int32_t)from->h, (int32_t)from->w};
	view->to = (struct tensor_dims){(int32_t)to->n, (int32_t)to->c, (int32_t)to->h, (int32_t)to->w};
}

/* True where it is known that all was written, its own bytes or its base's. */
static inline bool tensor_all_written(const struct tensor *tensor)
{
	const struct tensor *root = tensor_root(tensor);

	return atomic_load_explicit(&root->all_written, memory_order_relaxed) ||
	       (atomic_load_explicit(&tensor->all_written, memory_order_acquire) &&
		atomic_load_explicit(&tensor->doubts, memory_order_relaxed) ==
			atomic_load_explicit(&root->doubts, memory_order_relaxed));
}

#endif
