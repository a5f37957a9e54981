/* What of a device outlives the process beside its bytes and their bits: the front of its memory. Zero at first,
 * and all of it may be anything where the memory comes from a file: its readers check it.
 *
 * A process that is killed has made all stores up to one and none behind it, so a store that says what was done,
 * or is about to be, comes after it, or before: kept_order(). */
#ifndef DEVICE_KEPT_H
#define DEVICE_KEPT_H

#include <stdatomic.h>
#include <stdint.h>

enum { KEPT_MOVES_MAX = 128, KEPT_STAGE_BYTES = 32768 };

struct kept_move {
	uint64_t handle;
	int64_t from_offset, to_offset, bytes_per_npu;
	uint64_t is_empty; /* there is nothing to move */
};

struct kept {
	/* Some bit of the damaged ones may be set: else they need not be looked at. */
	_Atomic uint64_t may_be_damaged;
	/* The compaction that is under way: how many moves, lowest first, and how far they are. 0: there is none. Both
	 * with a checksum (placement/move_bytes.c). */
	_Atomic uint64_t n_moves, progress;
	struct kept_move moves[KEPT_MOVES_MAX];
	/* A stretch and its bits on their way to where they overlap themselves. */
	_Alignas(64) uint8_t stage[KEPT_STAGE_BYTES];
	uint64_t stage_written[KEPT_STAGE_BYTES / 64], stage_damaged[KEPT_STAGE_BYTES / 64];
};

/* Stores before it are made before those behind it, as far as the process itself, or its death, can tell. */
static inline void kept_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

#endif
