/* The offset allocator: which bytes [offset, offset + bytes) of one NPU, and so of every NPU, are taken.
 *
 * Best fit with all bookkeeping out of band: a bitmap of the sizes that free blocks have finds the smallest one
 * that is large enough and the largest of all, and a bitmap of block starts finds the block at any address, so
 * that any range can be taken or given back. Of free extents that are alike the lowest is taken: where an
 * allocation goes follows from which bytes are taken, and not from how that came about. What alloc, reserve,
 * release and a question cost grows with the logarithm of the number of free extents that are alike, and with a
 * word of the bitmaps at each 64-fold size of the arena. Offsets and sizes
 * are multiples of ARENA_QUANTUM. Touches none of the memory it hands out. */
#ifndef DEVICE_ARENA_H
#define DEVICE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/memory/heap.h"

enum { ARENA_QUANTUM = 4, ARENA_ALIGN_MAX = 128 };

struct arena;

/* An arena of `bytes` (a multiple of ARENA_QUANTUM, up to 2^30), all free. 0 or -ENOMEM. */
int arena_new(const struct heap *heap, uint64_t bytes, struct arena **out);
void arena_free(struct arena *arena);

/* Takes `bytes` (> 0) at a multiple of `align` (a power of two, ARENA_QUANTUM to ARENA_ALIGN_MAX). Finds a place
 * whenever there is one. `tag` is kept for arena_next. 0; 1 where no free extent fits; -ENOMEM (nothing changed).
 */
int arena_alloc(struct arena *arena, uint64_t bytes, uint64_t align, void *tag, uint64_t *offset);

/* Takes exactly [offset, offset + bytes): 0; 1 where some of it is taken or outside; -ENOMEM. */
int arena_reserve(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag);

/* Gives back [offset, offset + bytes), all of which is taken; it may be part of a block or span several. Cannot
 * fail: a range that ends inside a block costs a block entry for each such end, which arena_prepare set aside. */
void arena_release(struct arena *arena, uint64_t offset, uint64_t bytes);

/* Sets `n` block entries aside for releases that cut blocks; give them back with arena_unprepare. 0 or -ENOMEM. */
int arena_prepare(struct arena *arena, uint32_t n);
void arena_unprepare(struct arena *arena, uint32_t n);

/* Makes one block with this tag of [offset, offset + bytes), all of which is taken. Cannot fail: a range that ends
 * inside a block costs a block entry for each such end, which arena_prepare set aside. */
void arena_join(struct arena *arena, uint64_t offset, uint64_t bytes, void *tag);

/* Replaces the tag of the block that starts at `offset`. */
void arena_retag(struct arena *arena, uint64_t offset, void *tag);

struct arena_extent {
	uint64_t offset, bytes;
	bool taken;
	void *tag; /* of a taken one */
};

/* The block that holds `offset`; false past the end. Walk with offset = extent.offset + extent.bytes. */
bool arena_at(const struct arena *arena, uint64_t offset, struct arena_extent *extent);

uint64_t arena_free_bytes(const struct arena *arena);
/* The largest free extent; 0 when full. */
uint64_t arena_largest_free(const struct arena *arena);
/* The largest size that arena_alloc could take now at `align`. */
uint64_t arena_largest_fit(const struct arena *arena, uint64_t align);

/* Walks every block and bin and checks them against each other: NULL, or what is wrong. For tests. */
const char *arena_check(const struct arena *arena);

#endif
