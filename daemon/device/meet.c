/* Both places are painted, window by window, on one NPU after the other: exact for every layout, and only paid
 * where footprints really meet. */
#include "daemon/device/meet.h"

#include <string.h>

enum { WINDOW_BYTES = 4096 };

/* Whether a place has any element on an NPU. */
static bool has_channel(const struct npumem_geometry *geometry, const struct npumem_place *place, int64_t npu)
{
	int64_t distance = npu - place->start_npu;
	return (distance < 0 ? distance + geometry->n_npus : distance) < place->shape.c;
}

static bool can_meet(const struct npumem_geometry *geometry, const struct npumem_place *place, unsigned kinds,
		     int64_t npu)
{
	return kinds & ~(unsigned)MEET_DATA || has_channel(geometry, place, npu);
}

bool meet_each(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
	       const struct npumem_place *b, unsigned b_kinds,
	       bool (*visit)(void *ctx, const struct meet_range *range), void *ctx)
{
	uint8_t a_paint[WINDOW_BYTES], b_paint[WINDOW_BYTES];
	int64_t from = a->offset > b->offset ? a->offset : b->offset;
	int64_t a_end = a->offset + a->bytes_per_npu, b_end = b->offset + b->bytes_per_npu;
	int64_t end = a_end < b_end ? a_end : b_end;
	if (from >= end)
		return true;
	for (int64_t npu = 0; npu < geometry->n_npus; npu++) {
		struct meet_range range = {.npu = npu};
		if (!can_meet(geometry, a, a_kinds, npu) || !can_meet(geometry, b, b_kinds, npu))
			continue;
		for (int64_t at = from; at < end; at += WINDOW_BYTES) {
			int64_t n = end - at < WINDOW_BYTES ? end - at : WINDOW_BYTES;
			memset(a_paint, 0, (size_t)n);
			memset(b_paint, 0, (size_t)n);
			npumem_place_paint(geometry, a, npu, at - a->offset, at - a->offset + n, a_paint);
			npumem_place_paint(geometry, b, npu, at - b->offset, at - b->offset + n, b_paint);
			for (int64_t i = 0; i < n; i++) {
				if (a_paint[i] & a_kinds && b_paint[i] & b_kinds) {
					if (!range.bytes)
						range.offset = at + i;
					range.bytes++;
				} else if (range.bytes) {
					if (!visit(ctx, &range))
						return false;
					range.bytes = 0;
				}
			}
		}
		if (range.bytes && !visit(ctx, &range))
			return false;
	}
	return true;
}

static bool take_first(void *ctx, const struct meet_range *range)
{
	*(struct meet_range *)ctx = *range;
	return false;
}

bool meet_first(const struct npumem_geometry *geometry, const struct npumem_place *a, unsigned a_kinds,
		const struct npumem_place *b, unsigned b_kinds, struct meet_range *range)
{
	return !meet_each(geometry, a, a_kinds, b, b_kinds, take_first, range);
}

/* A stride whose dimension has extent 1 leads nowhere. */
static bool same_step(int64_t extent, int64_t a, int64_t b)
{
	return extent == 1 || a == b;
}

bool meet_same(const struct npumem_place *a, const struct npumem_place *b)
{
	return a->address == b->address && a->lanes == b->lanes && a->word_bytes == b->word_bytes &&
	       a->last_w == b->last_w && !memcmp(&a->shape, &b->shape, sizeof(a->shape)) &&
	       same_step(a->words_n, a->stride.n, b->stride.n) &&
	       same_step(a->channels_per_npu, a->stride.c, b->stride.c) &&
	       same_step(a->shape.h, a->stride.h, b->stride.h) && same_step(a->shape.w, a->stride.w, b->stride.w);
}
