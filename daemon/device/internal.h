/* The device's own struct, for the files of this folder that implement device.h and op.h. */
#ifndef DEVICE_INTERNAL_H
#define DEVICE_INTERNAL_H

#include "daemon/device/arena/arena.h"
#include "daemon/device/device.h"
#include "daemon/device/memory/local.h"
#include "daemon/device/operations/packs.h"
#include "daemon/device/tensors/totals.h"

/* A place in the tensor table. The struct of a gone tensor stays for the next one. */
struct slot {
	struct tensor *tensor;
	uint32_t generation;
	bool live, is_unused; /* neither: its generations have run out, or nobody knows which one is next */
	uint32_t next_unused; /* index + 1; 0 ends the chain */
};

struct device {
	struct device_options options;
	const struct heap *heap;
	struct local local;
	struct arena *arena;
	struct slot *slots;
	uint32_t n_slots, capacity, unused;
	size_t owner_bytes; /* behind each tensor */
	int64_t n_tensors, n_views;
	uint64_t n_changes; /* tensors that came or went, ever */
	struct totals totals;
	struct intervals guests;	 /* those placed over other footprints */
	bool has_stale_guests;		 /* some guest may meet nobody any more */
	struct overlap_windows *windows; /* counts of the bytes where guests lie; NULL without guests */
	void (*give_way)(void *ctx);	 /* NULL: nobody waits */
	void *give_way_ctx;
	struct {
		_Atomic bool is_on;
		void (*before)(void *ctx, uint64_t off, uint64_t bytes);
		void *ctx;
	} changes;		 /* who is told of them (tensors/changes.h) */
	struct kernel_crew crew; /* share NULL: nobody helps */
	struct packs packs;
};

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

/* A tensor's reach in quanta of the arena. */
static inline uint64_t arena_from(const struct npumem_place *place)
{
	return (uint64_t)place->offset / ARENA_QUANTUM * ARENA_QUANTUM;
}

static inline uint64_t arena_to(const struct npumem_place *place)
{
	return ((uint64_t)place_end(place) + ARENA_QUANTUM - 1) / ARENA_QUANTUM * ARENA_QUANTUM;
}

/* What the arena aligns a tensor to that may lie anywhere. */
static inline int64_t arena_align(const struct npumem_place *place)
{
	return place->align_bytes < ARENA_QUANTUM ? ARENA_QUANTUM : place->align_bytes;
}

/* True where no kernel can ever write the tensor. */
static inline bool tensor_is_dma_only(const struct tensor *tensor)
{
	return tensor->sealed || tensor->dma_only;
}

#endif
