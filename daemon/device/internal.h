/* The device's own struct, for the files of this folder that implement device.h and op.h. */
#ifndef DEVICE_INTERNAL_H
#define DEVICE_INTERNAL_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/device.h"
#include "daemon/device/memory/chunks.h"
#include "daemon/device/memory/local.h"
#include "daemon/device/operations/packs.h"
#include "daemon/device/arena/occupancy.h"
#include "daemon/device/tensors/totals.h"

enum { TENSORS_PER_CHUNK = 32 };

struct device {
	struct device_options options;
	const struct heap *heap;
	struct local local;
	struct arena *arena;
	struct chunks slots; /* of TENSORS_PER_CHUNK each, with what their owners keep */
	uint32_t n_slots, unused;
	size_t owner_bytes; /* behind each tensor */
	int64_t n_tensors, n_views;
	uint64_t n_changes; /* tensors that came, went or moved, ever */
	struct totals totals;
	struct intervals guests;	 /* those placed over other footprints */
	struct occupancy immovable;	 /* where tensors lie that compaction leaves in place */
	struct overlap_windows *windows; /* counts of the bytes where guests lie; NULL without guests */
	void (*give_way)(void *ctx);	 /* NULL: nobody waits */
	void *give_way_ctx;
	struct {
		_Atomic bool is_on;
		void (*before)(void *ctx, uint64_t off, uint64_t bytes);
		void *ctx;
		void (*after)(void *ctx, uint64_t off, uint64_t bytes); /* NULL: nobody */
		void *after_ctx;
	} changes; /* called for each of them (tensors/changes.h) */
	struct {
		int64_t steps; /* that are left */
		bool mixed;
	} restore;
	struct kernel_crew crew; /* share NULL: nobody helps */
	struct packs packs;
};

/* The tensor of a slot, or the room for one. */
static inline struct tensor *slot_at(const struct device *device, uint32_t index)
{
	size_t bytes = sizeof(struct tensor) + device->owner_bytes;

	return (struct tensor *)(void *)((uint8_t *)device->slots.at[index / TENSORS_PER_CHUNK] +
					 index % TENSORS_PER_CHUNK * bytes);
}

/* At least once in a millisecond of work on another thread. */
static inline void device_give_way(const struct device *device)
{
	if (device->give_way)
		device->give_way(device->give_way_ctx);
}

static inline int64_t place_end(const struct npumem_place *place)
{
	return place->offset + place->bytes_per_npu;
}

static inline bool places_share_offsets(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->offset < place_end(b) && b->offset < place_end(a);
}

/* The quanta of the arena that have [offset, end). */
static inline uint64_t quanta_from(int64_t offset)
{
	return (uint64_t)offset / ARENA_QUANTUM * ARENA_QUANTUM;
}

static inline uint64_t quanta_to(int64_t end)
{
	return ((uint64_t)end + ARENA_QUANTUM - 1) / ARENA_QUANTUM * ARENA_QUANTUM;
}

/* A tensor's. */
static inline uint64_t arena_from(const struct tensor *tensor)
{
	return quanta_from(tensor_offset(tensor));
}

static inline uint64_t arena_to(const struct tensor *tensor)
{
	return quanta_to(tensor_end(tensor));
}

/* What the arena aligns a tensor to that may lie anywhere. */
static inline int64_t arena_align(int64_t align_bytes)
{
	return align_bytes < ARENA_QUANTUM ? ARENA_QUANTUM : align_bytes;
}

/* True where no kernel can ever write the tensor. */
static inline bool tensor_is_dma_only(const struct tensor *tensor)
{
	return tensor->sealed || tensor->dma_only;
}

#endif
