/* Local memory: the bytes of every NPU, and for each byte whether it was ever written and whether it is damaged. A
 * byte that is damaged and not written is lost: what was written there is gone.
 *
 * Everything reaches the bytes through local_at(), the one function that maps (NPU, offset) to a host address.
 * Lanes stand S + 2,176 bytes apart and not S: at a power of two the same offset of all NPUs falls into one cache
 * set, which costs 2.3x on features of a few bytes, and at 128 more into few sets of the second cache. Lives in
 * one stretch of memory that is handed in, so that a store can map it from a file: what is kept of the device, the
 * lanes, their bits. */
#ifndef DEVICE_LOCAL_H
#define DEVICE_LOCAL_H

#include <npumem/layout.h>

#include "daemon/device/memory/bits.h"
#include "daemon/device/memory/blocks.h"
#include "daemon/device/memory/kept.h"

enum { LOCAL_LANE_GAP_BYTES = 2048 + 128, LOCAL_POISON = 0xDB };

struct local {
	struct npumem_geometry geometry;
	struct kept *kept;
	uint8_t *lanes;
	uint64_t *written, *damaged;
	uint64_t lane_pitch;		   /* bytes from one NPU's first byte to the next one's */
	uint64_t word_pitch;		   /* 64-bit words between the bits of two NPUs */
	const struct blocks_paths *blocks; /* how its bytes are moved */
	_Atomic uint64_t n_damaged;	   /* bits set in `damaged`: mostly 0, so that nothing need be looked up */
};

uint64_t local_bytes(const struct npumem_geometry *geometry);
/* `memory`: local_bytes(), 64-byte aligned, zero or as such a local left it; then local_recount comes before
 * anything that asks about damage. */
void local_init(struct local *local, const struct npumem_geometry *geometry, enum isa isa, void *memory);

static inline uint8_t *local_at(const struct local *local, int64_t npu, int64_t offset)
{
	return local->lanes + (uint64_t)npu * local->lane_pitch + (uint64_t)offset;
}

static inline uint64_t *local_written(const struct local *local, int64_t npu)
{
	return local->written + (uint64_t)npu * local->word_pitch;
}

static inline uint64_t *local_damaged(const struct local *local, int64_t npu)
{
	return local->damaged + (uint64_t)npu * local->word_pitch;
}

/* [offset, offset + bytes) of one NPU holds what somebody meant it to: written, not damaged. */
void local_mark(struct local *local, int64_t npu, int64_t offset, int64_t bytes);
/* Poisons a range: what lockstep does to bytes that are another's. */
void local_poison(struct local *local, int64_t npu, int64_t offset, int64_t bytes);
/* What is in a range is no longer what anybody meant: it counts as never written. */
void local_unmark(struct local *local, int64_t npu, int64_t offset, int64_t bytes);
/* Zeroes a range that was marked or poisoned, and makes it never written. */
void local_forget(struct local *local, int64_t npu, int64_t offset, int64_t bytes);
/* The three for n stretches of one NPU, `pitch` apart, the first at `offset`. */
void local_mark_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch);
void local_unmark_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n,
			 int64_t pitch);
void local_forget_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n,
			 int64_t pitch);
/* Zeroes stretches, and makes them lost. */
void local_lose_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch);

/* A range moves to a lower offset of the same NPU in pieces of at most KEPT_STAGE_BYTES, each with its bits; then
 * what is left of it is forgotten. None of these changes how many bits are set in the end, so n_damaged stays;
 * each does the same when it is made again. Where a piece would overlap itself it is staged first: copied to where
 * it is in nobody's way. */
void local_stage(struct local *local, int64_t npu, int64_t from, int64_t bytes);
void local_move_piece(struct local *local, int64_t npu, int64_t to, int64_t from, int64_t bytes, bool staged);
void local_forget_moved(struct local *local, int64_t npu, int64_t offset, int64_t bytes);

/* Zeroes what `keep` has no bit for, of bytes [offset, offset + 64 * n_words), and makes it never written; offset
 * is a multiple of 64. Does not count: local_recount. */
void local_scrub(struct local *local, int64_t npu, int64_t offset, unsigned n_words, const uint64_t *keep);
/* Sets n_damaged to what there is. */
void local_recount(struct local *local);

#endif
