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

uint64_t local_bytes(const struct npumem_geometry *geometry)
{
	return lanes_bytes(geometry) + 2 * sizeof(uint64_t) * (uint64_t)geometry->n_npus * word_pitch(geometry);
}

void local_init(struct local *local, const struct npumem_geometry *geometry, enum isa isa, void *memory)
{
	*local = (struct local){
		.geometry = *geometry,
		.lanes = memory,
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

void local_forget_series(struct local *local, int64_t npu, int64_t offset, int64_t bytes, int64_t n, int64_t pitch)
{
	static const uint8_t zero[16];
	local->blocks->fill(local_at(local, npu, offset), &(struct blocks){bytes, {n, 1}, {pitch, 0}, {0, 0}},
			    zero);
	local_unmark_series(local, npu, offset, bytes, n, pitch);
}

void local_mark(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	local_mark_series(local, npu, offset, bytes, 1, 0);
}

void local_poison(struct local *local, int64_t npu, int64_t offset, int64_t bytes)
{
	uint64_t *damaged = local_damaged(local, npu);
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

void local_move_down(struct local *local, int64_t npu, int64_t to, int64_t from, int64_t bytes)
{
	int64_t left = from > to + bytes ? from : to + bytes;
	memmove(local_at(local, npu, to), local_at(local, npu, from), (size_t)bytes);
	bits_move_down(local_written(local, npu), (uint64_t)to, (uint64_t)from, (uint64_t)bytes);
	if (local->n_damaged) {
		/* The target was free, so this moves the count as it is; what is left is cleared below. */
		bits_move_down(local_damaged(local, npu), (uint64_t)to, (uint64_t)from, (uint64_t)bytes);
		bits_clear(local_damaged(local, npu), (uint64_t)left, (uint64_t)(from + bytes - left));
	}
	if (from + bytes > left)
		local_forget(local, npu, left, from + bytes - left);
}
