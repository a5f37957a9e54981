/* The device: geometry, memory, the arena, the tensor table, and the rules between tensors.
 *
 * Invariant: no byte of the device is data (or dummy) of two live tensors; the counts of device_stat add up to
 * X * S after every call. Has no fd, clock, thread or log; time and threads are the caller's. */
#ifndef DEVICE_DEVICE_H
#define DEVICE_DEVICE_H

#include <npumem/layout.h>

#include "daemon/device/isa.h"
#include "daemon/device/tensors/error_context.h"
#include "daemon/device/memory/heap.h"
#include "daemon/device/tensors/tensor.h"

struct device;
struct kernel_crew;

struct device_options {
	struct npumem_geometry geometry; /* checked */
	int rounding;			 /* enum npumem_rounding, 0: convergent */
	int uninitialized;		 /* enum npumem_uninitialized, 0: refuse */
	bool allow_unchecked;
	enum isa isa; /* ISA_ANY: the best; one beyond the best is taken for it */
	/* Whether bytes of its memory can be touched without waiting for a disk. NULL: it is no file on a disk,
	 * and a page that was touched stays there. */
	bool (*are_there)(const void *at, size_t bytes);
	uint64_t pack_bytes; /* host memory for packs that are kept: see operations/packs.h */
};

/* How much memory a device of this geometry lives in: local memory, its written and damaged bits, and what else of
 * the device is to outlive the process. How it is laid out follows from the geometry and this version. */
enum { DEVICE_MEMORY_VERSION = 1 };
uint64_t device_memory_bytes(const struct npumem_geometry *geometry);

/* `memory` holds device_memory_bytes(), 64-byte aligned; it is zero, or what a device of the same geometry left
 * there (then device_restore_begin comes next), and is not touched until used. It and `heap` outlive the device. 0
 * or -ENOMEM. */
int device_new(const struct device_options *options, const struct heap *heap, void *memory, struct device **out);
/* Frees the device and all its tensors. */
void device_free(struct device *device);
/* Each tensor comes with so much room for its owner, aligned as a tensor is: before the first one. */
void device_keep_for_owner(struct device *device, size_t bytes);
/* Host memory that a tensor or a view with so many meetings takes, its owner's room included, and no less. The
 * struct of a freed tensor is kept for the next one. */
size_t device_host_bytes(const struct device *device, unsigned n_meetings);

const struct device_options *device_options(const struct device *device);

/* One tensor to allocate. */
struct device_request {
	struct npumem_spec spec;
	int reuse; /* enum npumem_reuse; 0: never */
	bool dma_only, pinned;
};

/* Long work calls it between its parts, on its own thread, and another task may have the processor before it
 * returns. At first nothing is called. To be set before any work. */
void device_give_way_by(struct device *device, void (*give_way)(void *ctx), void *ctx);

/* From now on each change of bytes or bits of the device's memory calls before(ctx, off, bytes) first, on its own
 * thread, with a range that covers the change. To be set while nothing runs. */
void device_tell(struct device *device, void (*before)(void *ctx, uint64_t off, uint64_t bytes), void *ctx);
/* From now on each change of bytes or bits calls after(ctx, off, bytes) for all that it changed, on its own thread
 * and before a conflicting operation begins. If one change relies on another, their calls are in that order. To be
 * set before any work. */
void device_tell_after(struct device *device, void (*after)(void *ctx, uint64_t off, uint64_t bytes), void *ctx);
/* No longer; what runs may still do so once. */
void device_tell_no_more(struct device *device);

/* The threads that help with kernels; copied. At first there are none. To be set before any work. */
void device_help_by(struct device *device, const struct kernel_crew *crew);

/* Allocates all n tensors, or none. tensors[i] belongs to the device until device_release. 0; INVALID;
 * RESOURCE_EXHAUSTED (fields: asked_bytes_per_npu, free_bytes, largest_free_bytes, largest_n, fits_after_compact,
 * fits_if_safe, better_w, better_start_npu; at a fixed address in_the_way with the offset and bytes of its
 * footprint; where they would take too long to find, neither of the two fits_; without these fields where a tensor
 * would have more meetings than MEETINGS_MAX, or is too large to be searched a place for over others);
 * FAILED_PRECONDITION (reuse is unsafe: tensor, npu, offset, bytes); PERMISSION_DENIED (unchecked reuse is off).
 * The field tensor_index tells which of several. */
int device_alloc(struct device *device, const struct device_request *requests, unsigned n, struct tensor **tensors,
		 const struct error_context *context);

/* The same in pieces of bounded work, for tensors that lie over others, or are to be searched a place for there:
 * on a large device that may take long. Between two of them anything may happen to the device but a move of its
 * own tensors; requests and tensors stay. */
struct device_alloc {
	struct device *device;
	const struct device_request *requests;
	unsigned n, i; /* the one that is being placed */
	struct tensor **tensors;
	struct tensor *tensor;
	struct device_alloc_over *over;
};
/* Takes nothing yet. */
void device_alloc_begin(struct device_alloc *alloc, struct device *device, const struct device_request *requests,
			unsigned n, struct tensor **tensors);
/* As device_alloc, but a refused one is to be cancelled; or -EAGAIN when *steps, of which it takes one for some
 * 0.3 us, are used up: then to be called again, or cancelled. What needs no other's bytes is placed at once. Until
 * all are placed nobody sees any of them, but they hold their room. */
int device_alloc_step(struct device_alloc *alloc, int64_t *steps, const struct error_context *context);
/* Host memory that it holds until then: the maps of a search. */
size_t device_alloc_host_bytes(const struct device_alloc *alloc);
/* Bytes on all NPUs of the tensors that have their places until then: the first *n. */
int64_t device_alloc_bytes(const struct device_alloc *alloc, unsigned *n);
/* Gives up, and releases what it has, in steps too. True: everything is as before; else it is to be called again.
 * What met nobody is released at once. */
bool device_alloc_cancel(struct device_alloc *alloc, int64_t *steps);

/* A slice of `base`: [n0:n1, c0:c1, h0:h1, w0:w1], all within its shape. */
struct device_slice {
	struct npumem_dims from, to;
};
/* 0 or INVALID, RESOURCE_EXHAUSTED (host memory). */
int device_view_slice(struct device *device, struct tensor *base, const struct device_slice *slice,
		      struct tensor **view, const struct error_context *context);
/* The same elements with other frac_bits: each then stands for another number. Of fx8 and fx16. */
int device_view_format(struct device *device, struct tensor *base, int64_t frac_bits, struct tensor **view,
		       const struct error_context *context);
/* The same elements in the same order as another shape, where the strides allow it. */
int device_view_reshape(struct device *device, struct tensor *base, const struct npumem_dims *shape,
			struct tensor **view, const struct error_context *context);

/* Frees a tensor and its views, or one view. `gone` is told of each before it goes, views first; may be NULL. */
void device_release(struct device *device, struct tensor *tensor, void (*gone)(void *ctx, struct tensor *tensor),
		    void *ctx);
/* Releases what was just allocated together, and is nobody's yet. */
void device_release_all(struct device *device, struct tensor *const *tensors, unsigned n);

/* The long part of releasing a tensor that has storage, on any thread: zeroes its bytes and makes them never
 * written. Nothing may use it any more but device_release, which then takes no time. */
void device_forget(struct device *device, struct tensor *tensor);
/* About how long that takes, in op_cost's unit; 0 for a view, and for what is forgotten or was never written. */
int64_t device_forget_cost(const struct device *device, const struct tensor *tensor);

/* NULL for a handle that was never given or whose tensor is gone. */
struct tensor *device_find(const struct device *device, uint64_t handle);
/* Iterates over all live tensors, views included, oldest slot first: start with NULL. */
struct tensor *device_next(const struct device *device, const struct tensor *after);
/* The same in pieces of bounded work, between which tensors may come and go: one that lives throughout keeps its
 * place and is found once. *at: the place to go on behind; 0 is the start, and any other number will do. Looks at
 * no more than *looks slots, and takes those that it looked at from it. Moves *at to the tensor that it returns;
 * where that is NULL, to the last slot that it looked at, or to 0 at the end. */
struct tensor *device_after(const struct device *device, uint64_t *at, unsigned *looks);

/* Whether a tensor can be sealed; on any thread, as it takes time. 0; INVALID for a view (its base is what can be
 * sealed); DATA_LOST where bytes are lost; FAILED_PRECONDITION where bytes were never written and the policy
 * refuses those. */
int device_seal_check(struct device *device, struct tensor *tensor, const struct error_context *context);
/* Makes a tensor read-only for good; after device_seal_check, since which no byte of it was written. */
void device_seal(struct tensor *tensor);

/* What a tensor's bytes are like, for ls and show. */
struct device_state {
	/* Of its data, each byte once: never written, destroyed by a kernel, lost (device_lose). */
	int64_t unwritten_bytes, damaged_bytes, lost_bytes;
	bool lends, borrows; /* its empty blocks hold another's data, or the other way round */
};
void device_state(struct device *device, const struct tensor *tensor, struct device_state *state);

/* The same in two parts, as counting bytes takes time in proportion to the tensor. The counting is of a copy and
 * runs on any thread; the tensor may be gone meanwhile. */
struct device_scan {
	struct npumem_place place;
	bool all_written, untouched; /* known without looking */
};
struct device_scan device_scan_of(const struct tensor *tensor);
/* About how long it takes, in the measure of op_cost; 0 where all is known without looking. */
int64_t device_scan_cost(const struct device *device, const struct tensor *tensor);
/* Sets the bytes of `state`, and device_state_lending the rest of it. */
void device_scan(const struct device *device, const struct device_scan *scan, struct device_state *state);
/* O(1) for each tensor that it meets: MEETINGS_MAX at most. */
void device_state_lending(const struct tensor *tensor, struct device_state *state);

struct device_counts {
	int64_t total, data, dummy, padding, empty, free; /* every byte once, the strongest kind; they add up */
	int64_t lent;	      /* bytes that are one tensor's empty block and another's data, no dummies */
	int64_t largest_free; /* per NPU */
	int64_t tensors, views;
	int64_t packs;	/* host memory that kept packs take */
	bool uncounted; /* padding and lent are 0, and empty has the padding, too */
};
/* O(1) when device_stat_count has nothing left to count; else it counts all of that first, which may take minutes.
 */
void device_stat(struct device *device, struct device_counts *counts);
/* What is known without counting, O(1). Where only a part of a quantum is taken, which takes a strided tensor at
 * an odd address, its free bytes are in `empty`, too. */
void device_stat_uncounted(const struct device *device, struct device_counts *counts);
/* The packs alone. */
int64_t device_packs_bytes(const struct device *device);
/* What may take long, where tensors lie over others: counts until it has looked at `most` of them; true when
 * nothing is left to count. */
bool device_stat_count(struct device *device, unsigned most);
/* Bytes of data and dummies on each NPU, those of several tensors once for each; `npus` has n_npus. */
void device_npus(const struct device *device, int64_t *npus);
/* Of these, what is quickly told: bytes per NPU that are free in all, and in one piece. */
void device_room(const struct device *device, int64_t *free_bytes, int64_t *largest_free);

/* The tensors whose footprint holds `offset` of `npu`, with the kind of the byte; at most `most`; the number. */
struct device_owner {
	struct tensor *tensor;
	enum npumem_byte kind;
};
unsigned device_at(struct device *device, int64_t npu, int64_t offset, struct device_owner *owners, unsigned most);

/* Visits each tensor (no views: they have no bytes of their own) whose footprint has one of [offset, offset +
 * *bytes) of every NPU; return false to stop. False where the visitor stopped. O(log n) for each tensor. The
 * visits are bounded: where the range has more tensors, *bytes becomes less, but not 0, and the tensors that have
 * one of these bytes were visited. */
enum { DEVICE_VISITS_MAX = 1056 }; /* of hosts, and of guests */
bool device_each_at(const struct device *device, int64_t offset, int64_t *bytes,
		    bool (*visit)(void *ctx, struct tensor *tensor), void *ctx);

/* Copies raw bytes for `dump`, unwritten ones included: [offset, offset + bytes) of one NPU, within its S. */
void device_peek(const struct device *device, int64_t npu, int64_t offset, int64_t bytes, uint8_t *to);
/* Brings the pages of the same into memory, on any thread: their bytes may change meanwhile. */
void device_fetch(const struct device *device, int64_t npu, int64_t offset, int64_t bytes);

/* Whether some tensor has this offset. */
bool device_is_taken(const struct device *device, int64_t offset);

/* Where tensors lie that compaction leaves in place: pinned ones, and those that share offsets with others. */
const struct occupancy *device_immovable(const struct device *device);

/* One move of a compaction. */
enum { DEVICE_MOVES_MAX = 128 }; /* in a step */
struct device_move {
	struct tensor *tensor;
	int64_t from_offset, to_offset, bytes_per_npu;
};
/* Moves tensors that are not pinned, lending or borrowing toward offset 0, in order of offset. `moved` is told
 * of each (after it moved; in a dry run, of what would move). 0, or -ENOMEM (what was told of has moved). */
int device_compact(struct device *device, bool dry_run, void (*moved)(void *ctx, const struct device_move *move),
		   void *ctx);

/* The same in steps, so that neither many tensors nor many bytes take long at a time. Zeroed to begin, but for the
 * bounds. */
struct device_compaction {
	int64_t step_bytes; /* of all NPUs: a step ends when it has decided to move as many; 0: no bound */
	int64_t most_bytes; /* of all NPUs: a larger tensor stays where it is; 0: no bound */
	uint64_t next;	    /* the block of the arena to look at */
	int64_t end;	    /* of the last block, as it will lie */
	bool done;
	unsigned n_followed;	       /* moves of the last step whose views have their places */
	struct tensor *next_to_follow; /* of the next one's views; NULL: the first */
};
/* Decides the next `most` moves (DEVICE_MOVES_MAX at most, unless it is a dry run), of which there may be none,
 * looking at so many blocks at most; sets `done` at the end. Unless it is a dry run the tensors then have their
 * new places, but their bytes are still where they were: nothing but device_compact_bytes may touch bytes, nor
 * anybody allocate, until that has run. 0 or -ENOMEM (this step decided nothing). */
int device_compact_step(struct device *device, struct device_compaction *compaction, bool dry_run,
			struct device_move *moves, unsigned most, unsigned *n);
/* After a step that is no dry run, again until it returns true: gives their new places to `most` more views of the
 * tensors that the step moved. Nothing may use a view before that. */
bool device_compact_views(struct device *device, struct device_compaction *compaction,
			  const struct device_move *moves, unsigned n, unsigned most);
/* After a step whose bytes were moved: others may have come and gone before the next one. */
void device_compact_resume(struct device_compaction *compaction);
/* Moves the bytes of the last step's tensors, on any thread. Stopped dead at any point, it is gone on with by
 * device_restore_end, where the tensors were restored at their new places; where they were restored at their old
 * ones, which is right until it is called, it is as if there had been no such step. */
void device_compact_bytes(struct device *device);

/* ---- what outlives the process ----
 * Bytes and marks do in `memory`, tensors do where each device_saved is kept, under the number of its slot. To
 * have them back: device_new, device_restore_begin; device_restore_free and device_restore for the slots, in three
 * passes (device_saved_pass); device_restore_end; then what was under way is device_lose'd. */

/* All that there is to know of a tensor beside its bytes; without holes. Moving its base does not change a view's.
 */
struct device_saved {
	uint64_t handle;
	uint64_t base;		   /* of a view: the handle of the tensor that has the storage; else 0 */
	int64_t address;	   /* of a reshaped view the offset from its base's; of other views 0 */
	int64_t start_npu;	   /* of a reshaped view; else 0 */
	struct npumem_dims shape;  /* of a matrix, and of a view that is not reshaped: 0 */
	struct npumem_dims stride; /* of the strided layout, and of a reshaped view; else 0 */
	int64_t rows, cols, w;	   /* of a matrix that is no view; else 0 */
	struct tensor_range range; /* of a view; else 0 */
	int16_t frac_bits;	   /* NPUMEM_ANY: none */
	uint8_t dtype, layout, mode, reuse;
	uint8_t is_sealed, is_dma_only, is_pinned, is_guest, is_reshaped; /* 0 or 1 */
	uint8_t reserved[5];
};

/* Some 0.3 s; up to 10 s where strides do not nest. */
enum { DEVICE_RESTORE_STEPS = 1 << 18 };

/* `tensor` is a live one. Nobody but device_seal, device_compact_step and device_release changes what this says;
 * is_guest may still be 1 in what was kept of a tensor that shares nothing any more.
 */
void device_describe(const struct device *device, const struct tensor *tensor, struct device_saved *saved);
/* When to restore it: 0 to 2. Any value of `saved` will do. */
unsigned device_saved_pass(const struct device_saved *saved);

/* The slot of a handle, from 0 on; and its stamp when its tensor is gone, for device_restore_free. */
static inline uint32_t device_handle_slot(uint64_t handle)
{
	return (uint32_t)handle - 1;
}
static inline uint64_t device_handle_stamp(uint64_t handle)
{
	return (handle >> 32) + 1;
}

/* Of a new device, after device_keep_for_owner: there are n slots, none of them to be used. `mixed`: what was kept
 * of two tensors may be of different times. 0 or -ENOMEM. */
int device_restore_begin(struct device *device, uint32_t n_slots, bool mixed);
/* The slot may be used. `stamp`: of the last tensor that it had, so that no handle is given twice; 0: it had none.
 * A slot that neither this nor device_restore is called for stays unused for good. Once for a slot; lowest last,
 * for the last one is used first. */
void device_restore_free(struct device *device, uint32_t slot, uint64_t stamp);
/* Places a tensor again as it was, under its handle. Whether it may lie there is not judged anew, but verified is
 * that it can: every value is in range, no byte is data of two tensors, two that are no guests do not meet, a view
 * lies in its base. Where a tensor of reuse unchecked lies over others, DEVICE_RESTORE_STEPS in all bound what
 * comparing data takes. After that what was kept is believed, and the two count as lending to one another; or, if
 * it is mixed, the tensor cannot be restored. 0; INVALID, FAILED_PRECONDITION or RESOURCE_EXHAUSTED: it cannot be
 * (nothing changed; `context` is asked for names of restored tensors); -ENOMEM (nothing changed). */
int device_restore(struct device *device, const struct device_saved *saved, struct tensor **tensor,
		   const struct error_context *context);
/* After the last tensor: ends a compaction that was under way, counts damage. What is marked in room that no
 * tensor has is zeroed and made never written. `scrub`: the same for all that is no tensor's data, marked or not,
 * as it may be of tensors that could not be restored, or older than the tensors are; takes time in proportion to
 * the device. Stopped dead, all of it can be done again: that there is nothing to scrub any more is not to be
 * recorded before. Where tensors are placed from here on follows from where tensors lie: as in the device from
 * which they were restored. */
void device_restore_end(struct device *device, bool scrub);
/* Before it: whether the record of a compaction that was under way can be believed. Otherwise nothing is moved,
 * and what tensors hold is not known. */
bool device_compaction_is_sound(const struct device *device);
/* Elements [first, first + count) of a tensor or view (count < 0, or beyond its end: all from `first`; first < 0
 * or beyond: all of it) are lost: their bytes are zero, and to read them is refused (DATA_LOST, field lost_bytes),
 * whatever the policy, until they are written again or poisoned. On any thread; nothing may use them meanwhile. */
void device_lose(struct device *device, struct tensor *tensor, int64_t first, int64_t count);

/* Checks every invariant of the device, its arena included: NULL, or what is wrong. For tests. */
const char *device_check(struct device *device);

#endif
