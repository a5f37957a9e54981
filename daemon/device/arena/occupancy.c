/* Each tensor adds 1 where it begins and takes it off behind its end, so that the sum up to a cell is the number
 * of tensors in it. */
#include "daemon/device/arena/occupancy.h"

#include <assert.h>

#include "daemon/device/arena/arena.h"

/* An NPU has at most 2^30 bytes: no product overflows. */
static unsigned cell_below(int64_t npu_bytes, int64_t offset)
{
	return (unsigned)(offset * OCCUPANCY_CELLS / npu_bytes);
}

static unsigned cell_above(int64_t npu_bytes, int64_t offset)
{
	return (unsigned)((offset * OCCUPANCY_CELLS + npu_bytes - 1) / npu_bytes);
}

void occupancy_add(struct occupancy *occupancy, int64_t npu_bytes, int64_t from, int64_t to, int by)
{
	assert(0 <= from && from < to && to <= npu_bytes);
	occupancy->change[cell_below(npu_bytes, from)] += by;
	occupancy->change[cell_above(npu_bytes, to)] -= by;
	occupancy->n_changes++;
}

/* The offsets that cells [from, to) have whole. */
static int64_t offset_of(int64_t npu_bytes, unsigned from)
{
	return (from * npu_bytes + OCCUPANCY_CELLS - 1) / OCCUPANCY_CELLS;
}

static int64_t end_of(int64_t npu_bytes, unsigned to)
{
	return to * npu_bytes / OCCUPANCY_CELLS;
}

/* The next range of free cells [*from, *to), behind *to; false at the end. `n`: tensors in the cell before *to. */
static bool next_free(const struct occupancy *occupancy, int32_t *n, unsigned *from, unsigned *to)
{
	unsigned at = *to;
	while (at < OCCUPANCY_CELLS && (*n += occupancy->change[at]))
		at++;
	*from = at;
	if (at == OCCUPANCY_CELLS)
		return false;
	for (at++; at < OCCUPANCY_CELLS && !occupancy->change[at];)
		at++;
	*to = at;
	return true;
}

unsigned occupancy_pieces(const struct occupancy *occupancy, unsigned piece)
{
	unsigned from, to = 0, n_pieces = 0;
	int32_t n = 0;
	while (next_free(occupancy, &n, &from, &to))
		n_pieces += (to - from) / piece;
	return n_pieces;
}

void occupancy_spare(const struct occupancy *occupancy, int64_t npu_bytes, unsigned piece, int64_t *from,
		     int64_t *to)
{
	unsigned range_from, range_to = 0, longest = 0;
	int32_t n = 0;
	*from = *to = 0;
	while (next_free(occupancy, &n, &range_from, &range_to)) {
		unsigned spare = (range_to - range_from) % piece;
		if (spare <= longest)
			continue;
		longest = spare;
		*from = offset_of(npu_bytes, range_to - spare);
		*to = end_of(npu_bytes, range_to);
	}
}

static int64_t aligned_bytes(int64_t npu_bytes, unsigned from, unsigned to)
{
	int64_t offset = (offset_of(npu_bytes, from) + ARENA_ALIGN_MAX - 1) / ARENA_ALIGN_MAX * ARENA_ALIGN_MAX;
	return end_of(npu_bytes, to) - offset;
}

void occupancy_gaps_update(struct occupancy_gaps *gaps, int64_t npu_bytes, const struct occupancy *a,
			   const struct occupancy *b)
{
	unsigned from = 0;
	int32_t n = 0;
	if (gaps->is_known && gaps->n_changes[0] == a->n_changes && gaps->n_changes[1] == b->n_changes)
		return;
	*gaps = (struct occupancy_gaps){.n_changes = {a->n_changes, b->n_changes}, .is_known = true};
	for (unsigned i = 0; i < OCCUPANCY_CELLS; i++) {
		n += a->change[i] + b->change[i];
		gaps->n_taken[i + 1] = (uint16_t)(gaps->n_taken[i] + (n != 0));
		if (n) {
			from = i + 1;
			continue;
		}
		int64_t bytes = aligned_bytes(npu_bytes, from, i + 1);
		gaps->longest = bytes > gaps->longest ? bytes : gaps->longest;
	}
}

bool occupancy_gaps_has(const struct occupancy_gaps *gaps, int64_t npu_bytes, int64_t from, int64_t to)
{
	return gaps->n_taken[cell_below(npu_bytes, from)] == gaps->n_taken[cell_above(npu_bytes, to)];
}
