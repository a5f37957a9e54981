#include "daemon/device/memory/local.h"

#include <string.h>

static uint64_t word_pitch(const struct npumem_geometry *geometry)
{
	/* One cache line more than the bits need, for the same reason as the gap between the lanes. */
	return (uint64_t)geometry->npu_bytes / 64 + 8;
}

static uint64_t lanes_bytes(const struct npumem_geometry *geometry)
{
	return (uint64_t)geometry->n_npus * (uint64_t)(geometry->npu_bytes + LOCAL_LANE_GAP_BYTES);
}

/* Pages of its own. */
enum { PAGE_BYTES = 4096, KEPT_BYTES = (sizeof(struct kept) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES };

uint64_t local_bytes(const struct npumem_geometry *geometry)
{
	return KEPT_BYTES + lanes_bytes(geometry) +
	       2 * sizeof(uint64_t) * (uint64_t)geometry->n_npus * word_pitch(geometry);
}

void local_init(struct local *local, const struct npumem_geometry *geometry, enum isa isa, void *memory)
{
	*local = (struct local){
		.geometry = *geometry,
		.kept = memory,
		.lanes = (uint8_t *)memory + KEPT_BYTES,
		.lane_pitch = (uint64_t)(geometry->npu_bytes + LOCAL_LANE_GAP_BYTES),
		.word_pitch = word_pitch(geometry),
		.blocks = blocks_paths(isa),
	};
	local->written = (uint64_t *)(local->lanes + lanes_bytes(geometry));
	local->damaged = local->written + (uint64_t)geometry->n_npus * local->word_pitch;
}

static void damaged_clear(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n,
			  int64_t pitch)
{
	if (!local->n_damaged)
		return;
	uint64_t *damaged = local_damaged(local, npu);
	local->n_damaged -=
		bits_count_series(damaged, (uint64_t)offset, (uint64_t)bytes, (uint64_t)n, (uint64_t)pitch);
	bits_clear_series(damaged, (uint64_t)offset, (uint64_t)bytes, (uint64_t)n, (uint64_t)pitch);
}

void local_mark_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	bits_set_series(local_written(local, npu), (uint64_t)offset, (uint64_t)bytes, (uint64_t)n,
			(uint64_t)pitch);
	damaged_clear(local, npu, offset, bytes, n, pitch);
}

void local_unmark_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	bits_clear_series(local_written(local, npu), (uint64_t)offset, (uint64_t)bytes, (uint64_t)n,
			  (uint64_t)pitch);
	damaged_clear(local, npu, offset, bytes, n, pitch);
}

static void zero_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	static const uint8_t zero[16];
	local->blocks->fill(local_at(local, npu, offset), &(struct blocks){bytes, {n, 1}, {pitch, 0}, {0, 0}},
			    zero);
}

void local_forget_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	/* In this order: a process that ends in between leaves nothing that looks as if somebody had written zeroes.
	 */
	local_unmark_series(local, npu, offset, bytes, n, pitch);
	kept_order();
	zero_series(local, npu, offset, bytes, n, pitch);
}

void local_mark(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	local_mark_series(local, npu, offset, bytes, 1, 0);
}

/* Before the first bit is set. */
static void note_damage(struct local *local)
{
	atomic_store_explicit(&local->kept->may_be_damaged, 1, memory_order_relaxed);
	kept_order();
}

void local_poison(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	uint64_t *damaged = local_damaged(local, npu);
	note_damage(local);
	memset(local_at(local, npu, offset), LOCAL_POISON, (size_t)bytes);
	bits_set(local_written(local, npu), (uint64_t)offset, (uint64_t)bytes);
	local->n_damaged += (uint64_t)bytes - bits_count(damaged, (uint64_t)offset, (uint64_t)bytes);
	bits_set(damaged, (uint64_t)offset, (uint64_t)bytes);
}

void local_unmark(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	local_unmark_series(local, npu, offset, bytes, 1, 0);
}

void local_forget(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	local_forget_series(local, npu, offset, bytes, 1, 0);
}

void local_lose_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	uint64_t *damaged = local_damaged(local, npu);
	note_damage(local);
	local->n_damaged += (uint64_t)(bytes * n) - bits_count_series(damaged, (uint64_t)offset, (uint64_t)bytes,
								      (uint64_t)n, (uint64_t)pitch);
	bits_set_series(damaged, (uint64_t)offset, (uint64_t)bytes, (uint64_t)n, (uint64_t)pitch);
	bits_clear_series(local_written(local, npu), (uint64_t)offset, (uint64_t)bytes, (uint64_t)n,
			  (uint64_t)pitch);
	zero_series(local, npu, offset, bytes, n, pitch);
}

/* ---- moves ---- */

void local_stage(struct local *local, int64_t npu, int64_t from, int64_t bytes)
{
	struct kept *kept = local->kept;
	memcpy(kept->stage, local_at(local, npu, from), (size_t)bytes);
	bits_copy(kept->stage_written, 0, local_written(local, npu), (uint64_t)from, (uint64_t)bytes);
	if (kept->may_be_damaged)
		bits_copy(kept->stage_damaged, 0, local_damaged(local, npu), (uint64_t)from, (uint64_t)bytes);
}

void local_move_piece(struct local *local, int64_t npu, int64_t to, int64_t from, int64_t bytes, bool staged)
{
	const struct kept *kept = local->kept;
	const uint8_t *source = staged ? kept->stage : local_at(local, npu, from);
	uint64_t at = staged ? 0 : (uint64_t)from;
	memcpy(local_at(local, npu, to), source, (size_t)bytes);
	bits_copy(local_written(local, npu), (uint64_t)to,
		  staged ? kept->stage_written : local_written(local, npu), at, (uint64_t)bytes);
	if (kept->may_be_damaged)
		bits_copy(local_damaged(local, npu), (uint64_t)to,
			  staged ? kept->stage_damaged : local_damaged(local, npu), at, (uint64_t)bytes);
}

void local_forget_moved(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	memset(local_at(local, npu, offset), 0, (size_t)bytes);
	bits_clear(local_written(local, npu), (uint64_t)offset, (uint64_t)bytes);
	if (local->kept->may_be_damaged)
		bits_clear(local_damaged(local, npu), (uint64_t)offset, (uint64_t)bytes);
}

/* ---- after a restart ---- */

/* Mostly they are zero, and their page was never there. */
static void zero_where(uint8_t *bytes, uint64_t which)
{
	for (; which; which &= which - 1) {
		uint8_t *byte = &bytes[__builtin_ctzll(which)];
		if (*byte)
			*byte = 0;
	}
}

static bool all_zero(const uint8_t *bytes)
{
	uint64_t words[8], any = 0;
	memcpy(words, bytes, sizeof(words));
	for (unsigned i = 0; i < 8; i++)
		any |= words[i];
	return !any;
}

static void keep_bits(uint64_t *word, uint64_t keep)
{
	if (*word & ~keep)
		*word &= keep;
}

void local_scrub(struct local *local, int64_t npu, int64_t offset, unsigned n_words, const uint64_t *keep)
{
	uint64_t *written = &local_written(local, npu)[offset / 64];
	uint64_t *damaged = &local_damaged(local, npu)[offset / 64];
	for (unsigned i = 0; i < n_words; i++) {
		uint8_t *bytes = local_at(local, npu, offset + 64 * (int64_t)i);
		keep_bits(&written[i], keep[i]);
		if (local->kept->may_be_damaged)
			keep_bits(&damaged[i], keep[i]);
		if (keep[i] != UINT64_MAX && !all_zero(bytes))
			zero_where(bytes, ~keep[i]);
	}
}

void local_recount(struct local *local)
{
	uint64_t n = 0;
	for (int64_t npu = 0; local->kept->may_be_damaged && npu < local->geometry.n_npus; npu++)
		n += bits_count(local_damaged(local, npu), 0, (uint64_t)local->geometry.npu_bytes);
	local->n_damaged = n;
	local->kept->may_be_damaged = n > 0;
}
